#include "core/cuda/modules.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/cuda/error.h"

namespace lockstep::cuda {

CUfunction Modules::find(Kernel kernel) {
  const std::span<const void* const> images = kernel.images();
  LS_CHECK(!images.empty(), DeviceError,
           "[launch] there is no kernel for this: none was named for the elements' dtype or size.");
  const MutexLock lock(mutex_);
  const CUfunction found = find(images, kernel.name().c_str());
  numbered_[kernel.number()].store(found, std::memory_order_release);
  return found;
}

Modules::Found Modules::function(const void* image, const char* name) {
  const MutexLock lock(mutex_);
  auto& known = named_[image];
  if (const auto found = known.find(std::string_view(name)); found != known.end()) {
    return found->second;
  }
  const CUfunction found = find(std::span(&image, 1), name);
  return known.emplace(name, Found{found, parameter_bytes(found)}).first->second;
}

void Modules::unload(const void* image) {
  const MutexLock lock(mutex_);
  const auto found = modules_.find(image);
  if (found == modules_.end()) return;
  named_.erase(image);
  for (const Kernel kernel : Kernel::all()) {
    if (std::ranges::count(kernel.images(), image) != 0) numbered_[kernel.number()] = nullptr;
  }
  const ContextGuard guard(context_);
  const Driver& driver = context_.driver();
  // The next synchronisation reports the error of failed work as well.
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

size_t Modules::parameter_bytes(CUfunction kernel) {
  const ContextGuard guard(context_);
  const Driver& driver = context_.driver();
  size_t offset = 0;
  size_t bytes = 0;
  size_t second = 0;
  // The driver fails for a parameter that does not exist.
  const CUresult result = driver.cuFuncGetParamInfo(kernel, 0, &offset, &bytes);
  LS_CHECK(result == CUDA_SUCCESS &&
               driver.cuFuncGetParamInfo(kernel, 1, &offset, &second) != CUDA_SUCCESS,
           DeviceError, "[launch] expected a kernel that takes one parameter, a plain struct.");
  return bytes;
}

}  // namespace lockstep::cuda
