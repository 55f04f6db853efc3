#pragma once

#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/cuda/context.h"

namespace lockstep::cuda {

/// The modules of compiled kernels that one device has loaded. Thread-safe.
class Modules {
 public:
  /// `context` must outlive it.
  explicit Modules(Context& context) : context_(context) {}

  /// A kernel of a module that cmake/Cuda.cmake embedded, loaded when first asked for and kept.
  /// Throws DeviceError, when the GPU cannot run it for one.
  CUfunction function(const void* image, const char* name);

 private:
  Context& context_;
  std::mutex mutex_;
  std::map<const void*, CUmodule> modules_;
  std::map<std::pair<const void*, std::string_view>, CUfunction> functions_;
};

}  // namespace lockstep::cuda
