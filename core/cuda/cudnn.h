#pragma once

// cuDNN is not part of the toolkit: if its header is missing or too old, the build leaves the cuDNN
// kernels out.
#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#if CUDNN_VERSION >= 91100
#define LS_HAS_CUDNN 1
#endif
#endif

#ifdef LS_HAS_CUDNN

#include <array>
#include <functional>
#include <string>

#include "core/base/function_ref.h"
#include "core/base/mutex.h"
#include "core/cuda/opened_library.h"
#include "core/tensor/device.h"

namespace lockstep::cuda {

/// The functions of cuDNN that are called here.
#define LS_CUDNN_FUNCTIONS(X)      \
  X(cudnnGetVersion)               \
  X(cudnnGetErrorString)           \
  X(cudnnGetLastErrorString)       \
  X(cudnnCreate)                   \
  X(cudnnSetStream)                \
  X(cudnnBackendCreateDescriptor)  \
  X(cudnnBackendDestroyDescriptor) \
  X(cudnnBackendSetAttribute)      \
  X(cudnnBackendGetAttribute)      \
  X(cudnnBackendFinalize)          \
  X(cudnnBackendExecute)

/// Table of cuDNN's functions.
struct Cudnn {
#define LS_CUDNN_MEMBER(name) decltype(&::name) name = nullptr;
  LS_CUDNN_FUNCTIONS(LS_CUDNN_MEMBER)
#undef LS_CUDNN_MEMBER
};

using LoadedCudnn = OpenedLibrary<Cudnn>;

/// Opens the first usable file of `library_files("libcudnn.so.9")`; it stays open until the process
/// ends. Opens none with LOCKSTEP_CUDNN=0.
LoadedCudnn load_cudnn();
/// Opens this file.
LoadedCudnn load_cudnn(const std::string& file);
/// Returns why cuDNN's file cannot be used without its parts, or "". Every function but a few is in
/// libcudnn_graph.so.9, which cuDNN opens at the first call, beside itself or where the system
/// looks; without it that call, even of cudnnGetVersion, ends the process. Other parts are missed
/// by plans alone. `opens` says whether a library can be opened.
std::string why_half_installed(const std::string& file,
                               FunctionRef<bool(const std::string&)> opens);
/// Fills the table from an opened library; `load_cudnn` calls it.
LoadedCudnn read_cudnn(const std::string& file, const FindFunction& find);

/// The library, with one handle for each device. Thread-safe.
class CudnnLibrary : public LazyLibrary<Cudnn> {
 public:
  using LazyLibrary::LazyLibrary;

  /// Calls `use` with the device's handle, which the first call creates, under a lock: a handle has
  /// only one current stream. The device's context must be current on this thread. Returns "", or
  /// why there is no handle (a driver that is too old, for example).
  std::string with_handle(int device, const std::function<void(cudnnHandle_t)>& use);
  /// Throws DeviceError with the library's own message unless a call of `function` succeeded.
  void check(cudnnStatus_t status, const char* function);

 private:
  struct Handle {
    Mutex mutex;
    cudnnHandle_t value LS_GUARDED_BY(mutex) = nullptr;
    std::string reason LS_GUARDED_BY(mutex);  ///< why there is no handle
  };

  std::array<Handle, kMaxDevices> handles_;
};

/// The library's message about the thread's last failed call, or "".
std::string last_error_message(const Cudnn& functions);

/// The process's cuDNN library.
CudnnLibrary& cudnn();
/// Makes `cudnn()` return `library`, which is never destroyed. Returns the previous one.
CudnnLibrary& set_cudnn(CudnnLibrary& library);

}  // namespace lockstep::cuda

#endif  // LS_HAS_CUDNN
