#include "core/cuda/nvml.h"

#include <fmt/format.h>

namespace lockstep::cuda {

LoadedNvml load_nvml() {
  const std::vector<std::string> files = library_files("libnvidia-ml.so.1");
  std::string reasons;
  for (const std::string& file : files) {
    LoadedNvml loaded = open_library(file, "nvmlInit_v2", &read_nvml);
    if (loaded.reason.empty()) return loaded;
    // A library that is there but refuses says more than those that are not.
    if (reasons.empty() || loaded.reason.find("cannot open shared") == std::string::npos) {
      reasons = loaded.reason;
    }
  }
  return LoadedNvml::none("NVML cannot be used: " + reasons);
}

LoadedNvml read_nvml(const std::string& file, const FindFunction& find) {
  LoadedNvml loaded;
  loaded.file = file;
  const std::string expected = "the NVML of a driver of CUDA 13";
#define LS_NVML_FIND(name, result, arguments) LS_FIND_FUNCTION(loaded, find, name, expected)
  LS_NVML_FUNCTIONS(LS_NVML_FIND)
#undef LS_NVML_FIND
#define LS_NVML_FIND(name, result, arguments) \
  loaded.functions.name = reinterpret_cast<decltype(loaded.functions.name)>(find(#name));
  LS_NVML_OPTIONAL_FUNCTIONS(LS_NVML_FIND)
#undef LS_NVML_FIND
  const nvml::Result started = loaded.functions.nvmlInit_v2();
  if (started != nvml::Result::kSuccess) {
    return LoadedNvml::none(
        fmt::format("{}: nvmlInit_v2 failed: {}", file, loaded.functions.nvmlErrorString(started)));
  }
  return loaded;
}

NvmlLibrary& nvml_library() {
  // Never destroyed: a thread that waits for a GPU that hangs may use it while the process ends.
  static auto* const library = new NvmlLibrary([] { return load_nvml(); });
  return *library;
}

}  // namespace lockstep::cuda
