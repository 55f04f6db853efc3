#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that move elements. `clone`, `contiguous`, `to`, `copy_`, `fill_` and `zero_` are also
// methods of Tensor.

/// src with self's shape and dtype: what copy_ leaves in self. src broadcasts to self's shape.
Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking = false);
/// Writes src into self, broadcast to its shape and cast to its dtype. Between devices, with
/// `non_blocking`, what is pinned on the cpu is left to the device, as `to` says; the other side
/// must have the same dtype and strides for it.
const Tensor& copy_(const Tensor& self, const Tensor& src, bool non_blocking = false);
/// A tensor of its own memory with self's elements. The default, kPreserve, keeps self's strides
/// when they leave no gaps; otherwise the copy is row-major.
Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format = std::nullopt);
/// Writes self's elements into `out`, which gets self's shape when it has another and is no view.
/// The out= forms of composite operators end with it.
const Tensor& clone_out(const Tensor& out, const Tensor& self);
/// self when it already has the format, else a copy, counted as hidden (core/device/copies.h).
Tensor contiguous(const Tensor& self, MemoryFormat memory_format = MemoryFormat::kContiguous);
/// self with another dtype or on another device: self itself when nothing changes, else a copy.
///
/// Copies between devices are work of their current streams. One to the cpu is waited for, and one
/// from the cpu may be followed by changes of self, but with `non_blocking`: the result on the cpu
/// is in pinned memory and may be read after the stream; and self, if it is pinned, must stay as it
/// is until the stream has passed. Calls that autograd records or that a mode sees are waited for.
Tensor to(const Tensor& self, DType dtype);
Tensor to(const Tensor& self, Device device, bool non_blocking = false);
Tensor to(const Tensor& self, DType dtype, Device device, bool non_blocking = false);

/// A tensor of self's geometry with every element `value`.
Tensor fill(const Tensor& self, const Scalar& value);
const Tensor& fill_(const Tensor& self, const Scalar& value);
const Tensor& zero_(const Tensor& self);

}  // namespace lockstep
