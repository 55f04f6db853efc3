#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// An uninitialised tensor on the cpu, in memory that copies from and to `device` use directly, so
/// that `copy_` and `to` with non_blocking need not wait for them: pinned memory where the device
/// has streams, else any. Throws OutOfMemoryError.
Tensor empty_pinned(IntList sizes, DType dtype, Device device);

/// self when its memory is pinned, else a copy in pinned memory. Throws DeviceError for a tensor
/// that is not on the cpu.
Tensor pin_memory(const Tensor& self);
/// Whether self is on the cpu and in pinned memory.
bool is_pinned(const Tensor& self);

}  // namespace lockstep
