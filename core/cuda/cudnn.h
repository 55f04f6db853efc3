#pragma once

// cuDNN is no part of the toolkit: where its header is missing or too old, the backend is built
// without.
#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#if CUDNN_VERSION >= 91100
#define LS_HAS_CUDNN 1
#endif
#endif

#ifdef LS_HAS_CUDNN

#include <array>
#include <functional>
#include <mutex>
#include <string>

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

/// cuDNN's functions.
struct Cudnn {
#define LS_CUDNN_MEMBER(name) decltype(&::name) name = nullptr;
  LS_CUDNN_FUNCTIONS(LS_CUDNN_MEMBER)
#undef LS_CUDNN_MEMBER
};

using LoadedCudnn = OpenedLibrary<Cudnn>;

/// Opens the first file of `library_files("libcudnn.so.9")` that can be used, for as long as the
/// process lives; none with LOCKSTEP_CUDNN=0.
LoadedCudnn load_cudnn();
/// Opens this one.
LoadedCudnn load_cudnn(const std::string& file);
/// The second half of it.
LoadedCudnn read_cudnn(const std::string& file, const FindFunction& find);

/// The library and a handle for each device. Thread-safe.
class CudnnLibrary : public LazyLibrary<Cudnn> {
 public:
  using LazyLibrary::LazyLibrary;

  /// Calls `use` with the device's handle, which is made at the first call, no other thread having
  /// it meanwhile: a handle has one stream at a time. The device's context is the thread's current
  /// one. Returns why there is no handle, as with a driver that is too old, or "".
  std::string with_handle(int device, const std::function<void(cudnnHandle_t)>& use);
  /// Throws DeviceError with the library's words unless a call of `function` succeeded.
  void check(cudnnStatus_t status, const char* function);

 private:
  struct Handle {
    std::mutex mutex;
    cudnnHandle_t value = nullptr;
    std::string reason;  ///< why there will be none
  };

  std::array<Handle, kMaxDevices> handles_;
};

/// What the library says about the thread's last failed call, or "".
std::string last_words(const Cudnn& functions);

/// The one of this process.
CudnnLibrary& cudnn();
/// From now on `cudnn()` is `library`, which is never destroyed. Returns the one before.
CudnnLibrary& set_cudnn(CudnnLibrary& library);

}  // namespace lockstep::cuda

#endif  // LS_HAS_CUDNN
