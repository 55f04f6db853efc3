#include "core/cuda/cudnn.h"

#ifdef LS_HAS_CUDNN

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "core/base/check.h"
#include "core/base/environment_flag.h"
#include "core/base/mutex.h"
#include "core/device/arithmetic_facts.h"

namespace lockstep::cuda {

namespace {

/// The graphs of kernels/cuda/cudnn_*.cc use the attributes of this version.
constexpr size_t kOldest = 91100;
/// Versions from 10 on may change the meaning of enumerators.
constexpr size_t kEnd = 100000;

bool is_turned_off() { return environment_choice("LOCKSTEP_CUDNN", {"0", "1"}) == "0"; }

/// Opens NVIDIA's run-time compiler for cuDNN, which opens it by its bare name. If the toolkit is
/// not in a folder that the system searches, that finds only a library that is already open. Both
/// versions are opened, because each cuDNN needs the one of its own CUDA version.
void open_compiler() {
  for (const char* const name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
    for (const std::string& file : library_files(name)) {
      if (dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) break;
    }
  }
}

std::atomic<CudnnLibrary*>& current_cudnn() {
  // Never destroyed: a kernel may be the last thing that a program does.
  static std::atomic<CudnnLibrary*> library = new CudnnLibrary([] { return load_cudnn(); });
  return library;
}

[[maybe_unused]] const bool kCudnnTold =
    register_arithmetic_fact(DeviceType::kCUDA, "cuDNN", [](int) {
      const LoadedCudnn& library = cudnn().loaded();
      return library.reason.empty() ? version_text(library.version) : std::string("none");
    });

}  // namespace

LoadedCudnn load_cudnn() {
  if (is_turned_off()) return LoadedCudnn::none("LOCKSTEP_CUDNN=0");
  return open_first("cuDNN", library_files("libcudnn.so.9"), "cuDNN 9",
                    [](const std::string& file) { return load_cudnn(file); });
}

std::string why_half_installed(const std::string& file,
                               FunctionRef<bool(const std::string&)> opens) {
  const std::string part = "libcudnn_graph.so.9";
  const std::string folder = file.substr(0, file.rfind('/') + 1);
  if (opens(folder + part) || opens(part)) return "";
  return fmt::format("{} is half installed: {} is neither beside it nor where the system looks",
                     file, part);
}

LoadedCudnn load_cudnn(const std::string& file) {
  const auto opens = [](const std::string& part) {
    return dlopen(part.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
  };
  const auto read = [&](const std::string& found, const FindFunction& find) {
    const std::string why = why_half_installed(found, opens);
    return why.empty() ? read_cudnn(found, find) : LoadedCudnn::none(why);
  };
  LoadedCudnn loaded = open_library(file, "cudnnGetVersion", read);
  if (loaded.reason.empty()) open_compiler();
  return loaded;
}

LoadedCudnn read_cudnn(const std::string& file, const FindFunction& find) {
  LoadedCudnn loaded;
  loaded.file = file;
  const std::string expected = fmt::format("cuDNN {} or newer", version_text(kOldest));
#define LS_CUDNN_FIND(name) LS_FIND_FUNCTION(loaded, find, name, expected)
  LS_CUDNN_FUNCTIONS(LS_CUDNN_FIND)
#undef LS_CUDNN_FIND
  loaded.version = loaded.functions.cudnnGetVersion();
  if (loaded.version < kOldest || loaded.version >= kEnd) {
    return LoadedCudnn::none(fmt::format("{} is cuDNN {}: expected 9, {} or newer", file,
                                         version_text(loaded.version), version_text(kOldest)));
  }
  return loaded;
}

void CudnnLibrary::check(cudnnStatus_t status, const char* function) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  const LoadedCudnn& library = loaded();
  throw DeviceError(fmt::format(
      "[cuda] {} failed: {} ({}). {} is cuDNN {}; CUDNN_LOGLEVEL_DBG=2 and "
      "CUDNN_LOGDEST_DBG=stderr make it say more, LOCKSTEP_CUDNN=0 does without it.",
      function, library.functions.cudnnGetErrorString(status),
      last_error_message(library.functions), library.file, version_text(library.version)));
}

std::string CudnnLibrary::with_handle(int device, const std::function<void(cudnnHandle_t)>& use) {
  const LoadedCudnn& library = loaded();
  if (!library.reason.empty()) return library.reason;
  LS_CHECK(device >= 0 && device < kMaxDevices, DeviceError,
           "[cuda] there is no cuda:{}: expected a device below {}.", device, kMaxDevices);
  Handle& handle = handles_[static_cast<size_t>(device)];
  const MutexLock lock(handle.mutex);
  if (!handle.reason.empty()) return handle.reason;
  if (handle.value == nullptr) {
    const cudnnStatus_t status = library.functions.cudnnCreate(&handle.value);
    if (status != CUDNN_STATUS_SUCCESS) {
      handle.value = nullptr;
      handle.reason = fmt::format("cudnnCreate failed on cuda:{}: {} ({}). {} is cuDNN {}", device,
                                  library.functions.cudnnGetErrorString(status),
                                  last_error_message(library.functions), library.file,
                                  version_text(library.version));
      return handle.reason;
    }
  }
  use(handle.value);
  return {};
}

std::string last_error_message(const Cudnn& functions) {
  std::array<char, 1024> words{};
  functions.cudnnGetLastErrorString(words.data(), words.size());
  words.back() = '\0';
  return words.data();
}

CudnnLibrary& cudnn() { return *current_cudnn().load(std::memory_order_acquire); }

CudnnLibrary& set_cudnn(CudnnLibrary& library) {
  return *current_cudnn().exchange(&library, std::memory_order_acq_rel);
}

}  // namespace lockstep::cuda

#endif  // LS_HAS_CUDNN
