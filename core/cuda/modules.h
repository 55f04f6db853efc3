#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "core/cuda/context.h"
#include "core/cuda/kernel.h"

namespace lockstep::cuda {

/// The modules of compiled kernels that one device has loaded. Thread-safe.
class Modules {
 public:
  /// A kernel that is called by its name, and the bytes of its one parameter.
  struct Found {
    CUfunction function = nullptr;
    size_t parameter_bytes = 0;
  };

  /// `context` must outlive it.
  explicit Modules(Context& context) : context_(context) {}

  /// Modules are loaded one after the other until one has the kernel, and kept. Throws DeviceError
  /// when none has it or the GPU cannot run it.
  CUfunction function(Kernel kernel) {
    const CUfunction known = numbered_[kernel.number()].load(std::memory_order_acquire);
    return known != nullptr ? known : find(kernel);
  }
  /// The same by name, for images that may be unloaded. Throws DeviceError, too, for a kernel that
  /// does not take one parameter.
  Found function(const void* image, const char* name);
  /// Forgets a module and its kernels, when the device's work is done. Nobody may be launching one.
  void unload(const void* image);

 private:
  CUfunction find(Kernel kernel);
  CUfunction find(std::span<const void* const> images, const char* name);
  size_t parameter_bytes(CUfunction kernel);

  Context& context_;
  std::mutex mutex_;
  std::map<const void*, CUmodule> modules_;
  const std::unique_ptr<std::atomic<CUfunction>[]> numbered_ =
      std::make_unique<std::atomic<CUfunction>[]>(Kernel::kMost);
  std::map<const void*, std::map<std::string, Found, std::less<>>> named_;
};

}  // namespace lockstep::cuda
