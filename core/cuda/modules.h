#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "core/cuda/context.h"

namespace lockstep::cuda {

/// The modules of compiled kernels that one device has loaded. Thread-safe.
class Modules {
 public:
  /// `context` must outlive it.
  explicit Modules(Context& context) : context_(context) {}

  /// A kernel of one of the modules that cmake/Cuda.cmake embedded, which are loaded one after the
  /// other until one has it, and kept; no image is the first of two lists. Throws DeviceError, when
  /// none has it or the GPU cannot run it for one.
  CUfunction function(std::span<const void* const> images, const char* name);
  /// Forgets a module and its kernels, when the device's work is done.
  void unload(const void* image);

 private:
  CUfunction find(std::span<const void* const> images, const char* name);

  Context& context_;
  std::mutex mutex_;
  std::map<const void*, CUmodule> modules_;
  /// By the first of the images, and name.
  std::map<const void*, std::map<std::string, CUfunction, std::less<>>> functions_;
};

}  // namespace lockstep::cuda
