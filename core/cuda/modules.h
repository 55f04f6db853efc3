#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/base/mutex.h"
#include "core/cuda/context.h"
#include "core/cuda/kernel.h"

namespace lockstep::cuda {

/// Modules of compiled kernels that are loaded on one device. Thread-safe.
class Modules {
 public:
  /// A kernel found by name, and the size of its one parameter.
  struct Found {
    CUfunction function = nullptr;
    size_t parameter_bytes = 0;
  };

  /// `context` must outlive it.
  explicit Modules(Context& context) : context_(context) {}

  /// Loads the kernel's modules one after the other, until one has it, and keeps them. Throws
  /// DeviceError if none has it or the GPU cannot run it.
  CUfunction function(Kernel kernel) {
    const CUfunction known = numbered_[kernel.number()].load(std::memory_order_acquire);
    return known != nullptr ? known : find(kernel);
  }
  /// Finds a kernel by name, in an image that may be unloaded later. Also throws DeviceError for a
  /// kernel that does not take one parameter.
  Found function(const void* image, const char* name);
  /// Unloads a module after the device's work is done. No thread may be launching one of its
  /// kernels.
  void unload(const void* image);

 private:
  CUfunction find(Kernel kernel);
  CUfunction find(std::span<const void* const> images, const char* name) LS_REQUIRES(mutex_);
  size_t parameter_bytes(CUfunction kernel);

  Context& context_;
  Mutex mutex_;
  std::map<const void*, CUmodule> modules_ LS_GUARDED_BY(mutex_);
  const std::unique_ptr<std::atomic<CUfunction>[]> numbered_ =
      std::make_unique<std::atomic<CUfunction>[]>(Kernel::kMost);
  std::map<const void*, std::map<std::string, Found, std::less<>>> named_ LS_GUARDED_BY(mutex_);
};

}  // namespace lockstep::cuda
