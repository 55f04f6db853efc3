#include "core/cuda/modules.h"

#include "core/cuda/error.h"

namespace lockstep::cuda {

CUfunction Modules::function(const void* image, const char* name) {
  const std::lock_guard lock(mutex_);
  CUfunction& function = functions_[{image, name}];
  if (function != nullptr) return function;
  const ContextGuard guard(context_);
  CUmodule& module = modules_[image];
  if (module == nullptr) LS_CUDA(context_.driver(), cuModuleLoadData, &module, image);
  LS_CUDA(context_.driver(), cuModuleGetFunction, &function, module, name);
  return function;
}

}  // namespace lockstep::cuda
