#include "core/cuda/context.h"

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/cuda/error.h"

namespace lockstep::cuda {

Context::Context(const Driver& driver, int index) : driver_(driver), index_(index) {
  LS_CUDA(driver_, cuDeviceGet, &device_, index);
}

Context::~Context() {
  if (context_ != nullptr && !lost_in_fork()) (void)driver_.cuDevicePrimaryCtxRelease(device_);
}

int Context::attribute(CUdevice_attribute which) const {
  int value = 0;
  LS_CUDA(driver_, cuDeviceGetAttribute, &value, which, device_);
  return value;
}

CUcontext Context::get() {
  LS_CHECK(!lost_in_fork(), DeviceError, "[cuda] {}.", kForked);
  CUcontext context = context_.load(std::memory_order_acquire);
  if (context != nullptr) [[likely]]
    return context;
  const MutexLock lock(mutex_);
  context = context_.load(std::memory_order_relaxed);
  if (context == nullptr) {
    LS_CUDA(driver_, cuDevicePrimaryCtxRetain, &context, device_);
    context_.store(context, std::memory_order_release);
  }
  return context;
}

ContextGuard::ContextGuard(Context& context) : driver_(context.driver()) {
  const CUcontext wanted = context.get();
  CUcontext current = nullptr;
  LS_CUDA(driver_, cuCtxGetCurrent, &current);
  if (current == wanted) return;
  LS_CUDA(driver_, cuCtxSetCurrent, wanted);
  saved_ = current;
}

ContextGuard::~ContextGuard() {
  if (saved_ != nullptr) (void)driver_.cuCtxSetCurrent(saved_);
}

}  // namespace lockstep::cuda
