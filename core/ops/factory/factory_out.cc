// The out= forms of factories. `out` determines the dtype and the device.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/shape.h"

namespace lockstep {

namespace {

using Format = std::optional<MemoryFormat>;

/// Resizes `out`; its elements are unspecified then.
const Tensor& resized(const Tensor& out, IntList size) {
  return same(out.sizes(), size) ? out : clone_out(out, zeros(size, out.options()));
}

/// Resizes `out` to `size` and fills it with `value`.
const Tensor& filled(const Tensor& out, IntList size, const Scalar& value) {
  return clone_out(out, full({}, value, out.options()).expand(size));
}

}  // namespace

LS_OP(empty_out, const Tensor&(IntList, Format, const Tensor&),
      "empty.out(SymInt[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("out with the given sizes, its elements unspecified.")
    .composite([](IntList size, Format, const Tensor& out) -> const Tensor& {
      return resized(out, size);
    });

LS_OP(empty_strided_out, const Tensor&(IntList, IntList, const Tensor&),
      "empty_strided.out(SymInt[] size, SymInt[] stride, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("out with the given sizes, its elements unspecified. It keeps its own strides.")
    .composite([](IntList size, IntList stride, const Tensor& out) -> const Tensor& {
      LS_CHECK(size.size() == stride.size(), ShapeError,
               "[empty_strided] sizes and strides differ in length: got {} and {}.",
               to_string(size), to_string(stride));
      return resized(out, size);
    });

LS_OP(empty_permuted_out, const Tensor&(IntList, IntList, const Tensor&),
      "empty_permuted.out(SymInt[] size, int[] physical_layout, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("out with the given sizes, its elements unspecified. It keeps its own strides.")
    .composite([](IntList size, IntList physical_layout, const Tensor& out) -> const Tensor& {
      LS_CHECK(size.size() == physical_layout.size(), ShapeError,
               "[empty_permuted] sizes and layout differ in length: got {} and {}.",
               to_string(size), to_string(physical_layout));
      return resized(out, size);
    });

LS_OP(zeros_out, const Tensor&(IntList, const Tensor&),
      "zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("Zeros, written into out.")
    .composite([](IntList size, const Tensor& out) -> const Tensor& {
      return filled(out, size, 0);
    });

LS_OP(ones_out, const Tensor&(IntList, const Tensor&),
      "ones.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("Ones, written into out.")
    .composite([](IntList size, const Tensor& out) -> const Tensor& {
      return filled(out, size, 1);
    });

LS_OP(full_out, const Tensor&(IntList, Scalar, const Tensor&),
      "full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("fill_value, written into every element of out.")
    .composite([](IntList size, Scalar value, const Tensor& out) -> const Tensor& {
      return filled(out, size, value);
    });

LS_OP(scalar_tensor_out, const Tensor&(Scalar, const Tensor&),
      "scalar_tensor.out(Scalar s, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("A number, written into a 0-d out.")
    .composite([](Scalar value, const Tensor& out) -> const Tensor& {
      return filled(out, {}, value);
    });

LS_OP(arange_out, const Tensor&(Scalar, const Tensor&),
      "arange.out(Scalar end, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("arange, written into out.")
    .composite([](Scalar end, const Tensor& out) -> const Tensor& {
      return clone_out(out, arange(end, out.options()));
    });

LS_OP(arange_start_out, const Tensor&(Scalar, Scalar, Scalar, const Tensor&),
      "arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("arange.start_step, written into out.")
    .composite([](Scalar start, Scalar end, Scalar step, const Tensor& out) -> const Tensor& {
      return clone_out(out, arange(start, end, step, out.options()));
    });

LS_OP(empty_like_out, const Tensor&(const Tensor&, Format, const Tensor&),
      "empty_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("out in self's shape, its elements unspecified.")
    .composite([](const Tensor& self, Format, const Tensor& out) -> const Tensor& {
      return resized(out, self.sizes());
    });

LS_OP(zeros_like_out, const Tensor&(const Tensor&, Format, const Tensor&),
      "zeros_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("Zeros in self's shape, written into out.")
    .composite([](const Tensor& self, Format, const Tensor& out) -> const Tensor& {
      return filled(out, self.sizes(), 0);
    });

LS_OP(
    ones_like_out, const Tensor&(const Tensor&, Format, const Tensor&),
    "ones_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("Ones in self's shape, written into out.")
    .composite([](const Tensor& self, Format, const Tensor& out) -> const Tensor& {
      return filled(out, self.sizes(), 1);
    });

LS_OP(full_like_out, const Tensor&(const Tensor&, Scalar, Format, const Tensor&),
      "full_like.out(Tensor self, Scalar fill_value, *, MemoryFormat? memory_format=None, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("fill_value in self's shape, written into out.")
    .composite([](const Tensor& self, Scalar value, Format, const Tensor& out) -> const Tensor& {
      return filled(out, self.sizes(), value);
    });

LS_OP(new_empty_out, const Tensor&(const Tensor&, IntList, const Tensor&),
      "new_empty.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("out with the given sizes, its elements unspecified.")
    .composite([](const Tensor&, IntList size, const Tensor& out) -> const Tensor& {
      return resized(out, size);
    });

LS_OP(new_empty_strided_out, const Tensor&(const Tensor&, IntList, IntList, const Tensor&),
      "new_empty_strided.out(Tensor self, SymInt[] size, SymInt[] stride, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("out with the given sizes, its elements unspecified. It keeps its own strides.")
    .composite([](const Tensor&, IntList size, IntList stride, const Tensor& out) -> const Tensor& {
      return op_empty_strided_out(size, stride, out);
    });

LS_OP(new_zeros_out, const Tensor&(const Tensor&, IntList, const Tensor&),
      "new_zeros.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("Zeros, written into out.")
    .composite([](const Tensor&, IntList size, const Tensor& out) -> const Tensor& {
      return filled(out, size, 0);
    });

LS_OP(new_ones_out, const Tensor&(const Tensor&, IntList, const Tensor&),
      "new_ones.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("Ones, written into out.")
    .composite([](const Tensor&, IntList size, const Tensor& out) -> const Tensor& {
      return filled(out, size, 1);
    });

LS_OP(
    new_full_out, const Tensor&(const Tensor&, IntList, Scalar, const Tensor&),
    "new_full.out(Tensor self, SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("fill_value, written into every element of out.")
    .composite([](const Tensor&, IntList size, Scalar value, const Tensor& out) -> const Tensor& {
      return filled(out, size, value);
    });

}  // namespace lockstep
