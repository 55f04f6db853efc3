#include "core/cuda/modules.h"

#include "core/cuda/error.h"

namespace lockstep::cuda {

CUfunction Modules::function(std::span<const void* const> images, const char* name) {
  const std::lock_guard lock(mutex_);
  auto& known = functions_[images.front()];
  if (const auto found = known.find(std::string_view(name)); found != known.end()) {
    return found->second;
  }
  return known.emplace(name, find(images, name)).first->second;
}

void Modules::unload(const void* image) {
  const std::lock_guard lock(mutex_);
  const auto found = modules_.find(image);
  if (found == modules_.end()) return;
  functions_.erase(image);
  const ContextGuard guard(context_);
  const Driver& driver = context_.driver();
  // What failed the next synchronisation reports as well.
  (void)driver.cuCtxSynchronize();
  (void)driver.cuModuleUnload(found->second);
  modules_.erase(found);
}

CUfunction Modules::find(std::span<const void* const> images, const char* name) {
  const ContextGuard guard(context_);
  const Driver& driver = context_.driver();
  CUfunction function = nullptr;
  CUresult result = CUDA_ERROR_NOT_FOUND;
  for (size_t i = 0; i < images.size() && result == CUDA_ERROR_NOT_FOUND; ++i) {
    CUmodule& module = modules_[images[i]];
    if (module == nullptr) LS_CUDA(driver, cuModuleLoadData, &module, images[i]);
    result = driver.cuModuleGetFunction(&function, module, name);
  }
  check(driver, result, "cuModuleGetFunction");
  return function;
}

}  // namespace lockstep::cuda
