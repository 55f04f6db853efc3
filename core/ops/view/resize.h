#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that change what memory a tensor describes, also methods of Tensor. They are not
// recorded: a tensor that requires grad is refused with AutogradError, and so is a view of one, a
// tensor made in inference mode outside that mode, and a sample of a batch under vmap.

/// Gives self another shape. The first elements of the storage keep their values, the storage grows
/// when the shape needs more (new elements are uninitialised) and never shrinks. The strides become
/// those of `memory_format`: row-major by default; with the same shape and no format, nothing
/// changes. A change counts as one in place. Throws DeviceError where memory that cannot grow
/// would have to: a window of an arena, or borrowed memory.
const Tensor& resize_(const Tensor& self, IntList sizes,
                      std::optional<MemoryFormat> memory_format = std::nullopt);

// `set_` moves self to another storage and counts as a change in place of self alone: tensors that
// share either storage keep their elements and versions. Self stops being a view. Under a
// NoGradGuard a leaf that requires grad is moved as well.

/// Leaves self with no elements, of shape [0], in a storage of its own.
const Tensor& set_(const Tensor& self);
/// Makes self another reference to source's elements, with its geometry. Throws DTypeError or
/// DeviceError if source has another dtype or is on another device.
const Tensor& set_(const Tensor& self, const Tensor& source);
/// Makes self describe elements of `source`, from element `storage_offset` of self's dtype on.
/// Throws ShapeError if they are not all inside the storage, DeviceError if it is on another
/// device. Not an operator: no mode sees the call.
const Tensor& set_(const Tensor& self, const Ref<Storage>& source, int64_t storage_offset,
                   IntList sizes, IntList strides);

}  // namespace lockstep
