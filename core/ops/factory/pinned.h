#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// An uninitialised tensor on the cpu for asynchronous copies to and from `device` (`copy_` and
/// `to` with non_blocking): in pinned memory if the device has streams, else in ordinary memory.
/// Throws OutOfMemoryError.
Tensor empty_pinned(IntList sizes, DType dtype, Device device);

/// self when its memory is pinned, else a copy in pinned memory. Throws DeviceError for a tensor
/// that is not on the cpu.
Tensor pin_memory(const Tensor& self);
/// Whether self is on the cpu and in pinned memory.
bool is_pinned(const Tensor& self);

}  // namespace lockstep
