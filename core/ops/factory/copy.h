#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that copy or fill elements. `clone`, `contiguous`, `to`, `copy_`, `fill_` and `zero_`
// are also methods of Tensor.

/// src with self's shape and dtype: what copy_ leaves in self. src broadcasts to self's shape.
Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking = false);
/// Writes src into self, broadcast to its shape and cast to its dtype. With `non_blocking` a copy
/// between a device and pinned cpu memory of the same dtype and strides is asynchronous; see `to`.
const Tensor& copy_(const Tensor& self, const Tensor& src, bool non_blocking = false);
/// A copy of self in new memory. The default, kPreserve, keeps self's strides when they leave no
/// gaps; otherwise the copy is row-major.
Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format = std::nullopt);
/// Writes self's elements into `out`, which is resized to self's shape unless it is a view. The
/// last step of the out= forms of composite operators.
const Tensor& clone_out(const Tensor& out, const Tensor& self);
/// Does so with indices or counts, the result of `op`. Throws DTypeError unless `out` has their
/// dtype: another may not hold them.
const Tensor& clone_indices_out(std::string_view op, const Tensor& out, const Tensor& indices);
/// self when it already has the format, else a copy, counted as hidden (core/device/copies.h).
Tensor contiguous(const Tensor& self, MemoryFormat memory_format = MemoryFormat::kContiguous);
/// self with another dtype or on another device: self itself when nothing changes and no `copy` is
/// asked for, else a copy.
///
/// Copies between devices run on their current streams. Without `non_blocking`, `to` waits for a
/// copy to the cpu, and self may be changed after a copy from the cpu. With `non_blocking`, a
/// result on the cpu is in pinned memory and must not be read before the stream has been waited
/// for, and a pinned self must not change until then. Calls that autograd records or a mode
/// intercepts always wait.
Tensor to(const Tensor& self, DType dtype);
Tensor to(const Tensor& self, Device device, bool non_blocking = false);
Tensor to(const Tensor& self, DType dtype, Device device, bool non_blocking = false,
          bool copy = false);

/// A tensor with self's shape, strides and dtype and every element `value`.
Tensor fill(const Tensor& self, const Scalar& value);
const Tensor& fill_(const Tensor& self, const Scalar& value);
const Tensor& zero_(const Tensor& self);

}  // namespace lockstep
