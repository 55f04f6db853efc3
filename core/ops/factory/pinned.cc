#include "core/ops/factory/pinned.h"

#include "core/base/check.h"
#include "core/device/device_runtime.h"
#include "core/device/pinned_allocator.h"
#include "core/ops/factory/copy.h"
#include "core/tensor/storage_extent.h"

namespace lockstep {

namespace {

Tensor make_pinned(IntList sizes, IntList strides, DType dtype) {
  const size_t bytes = storage_bytes("pin_memory", count_elements(sizes), dtype);
  return Tensor(make_ref<TensorImpl>(make_ref<Storage>(pinned_allocator().allocate(bytes), kCPU),
                                     sizes, strides, 0, dtype));
}

}  // namespace

Tensor empty_pinned(IntList sizes, DType dtype, Device device) {
  if (find_runtime(device) == nullptr) return empty_tensor(sizes, dtype);
  return make_pinned(sizes, contiguous_strides(sizes), dtype);
}

bool is_pinned(const Tensor& self) {
  return self.device() == kCPU && self.data() != nullptr && pinned_allocator().owns(self.data());
}

Tensor pin_memory(const Tensor& self) {
  LS_CHECK(self.device() == kCPU, DeviceError,
           "[pin_memory] only memory of the cpu can be pinned: expected a tensor on cpu, got {}.",
           to_string(self));
  if (is_pinned(self)) return self;
  const bool dense = is_dense(self.sizes(), self.strides());
  const Dims strides = dense ? to_dims(self.strides()) : contiguous_strides(self.sizes());
  return copy_(make_pinned(self.sizes(), strides, self.dtype()), self);
}

}  // namespace lockstep
