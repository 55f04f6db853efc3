// A tool as Nsight Systems puts into programs (NVTX_INJECTION64_PATH): it writes down the ranges
// that they open and close.

#include <nvtx3/nvToolsExt.h>

#include <mutex>
#include <string>

namespace {

std::mutex g_mutex;
std::string g_ranges;

int push(const char* name) {
  const std::lock_guard lock(g_mutex);
  g_ranges += std::string("(") + name;
  return 0;
}
int pop() {
  const std::lock_guard lock(g_mutex);
  g_ranges += ")";
  return 0;
}

}  // namespace

/// What was opened and closed so far: "(step(forward))".
extern "C" const char* ranges_so_far() { return g_ranges.c_str(); }

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0 ||
      size <= NVTX_CBID_CORE_RangePop) {
    return 0;
  }
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}
