// Search in sorted sequences and counts of integers; declared in sort.h.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/sort/sort.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace rules {
namespace {

Outputs searchsorted(const Tensor& sequence, const Tensor& self, bool out_int32, bool right,
                     std::optional<std::string_view> side, OptionalTensor sorter) {
  LS_CHECK(!side || *side == "left" || *side == "right", Error,
           "[searchsorted] unknown side: expected \"left\" or \"right\", got \"{}\".", *side);
  LS_CHECK(!(side == "left" && right), Error,
           "[searchsorted] side \"left\" contradicts right = true. Give one of them.");
  const DType common = promote(sequence.dtype(), self.dtype());
  LS_CHECK(common != DType::kBool, DTypeError,
           "[searchsorted] bools are not looked up. Cast them with to(dtype).");
  bool fits = sequence.dim() > 0;
  if (sequence.dim() > 1) fits = sequence.dim() == self.dim();
  for (int64_t i = 0; fits && sequence.dim() > 1 && i + 1 < self.dim(); ++i) {
    fits = sequence.sizes()[static_cast<size_t>(i)] == self.sizes()[static_cast<size_t>(i)];
  }
  LS_CHECK(fits, ShapeError,
           "[searchsorted] expected a sequence of one dimension, or with the leading sizes of the "
           "values; got shapes {} and {}.",
           sequence.shape(), self.shape());
  if (sorter) {
    LS_CHECK(same(sorter->sizes(), sequence.sizes()), ShapeError,
             "[searchsorted] the sorter needs the shape of the sequence: expected {}, got {}.",
             sequence.shape(), sorter->shape());
    LS_CHECK(sorter->dtype() == DType::kI64, DTypeError,
             "[searchsorted] the sorter must be int64, got {}.", to_string(sorter->dtype()));
  }
  LS_CHECK(!out_int32 || sequence.size(-1) < std::numeric_limits<int32_t>::max(), ShapeError,
           "[searchsorted] a sequence of {} elements is too long for int32 indices.",
           sequence.size(-1));
  Outputs outputs = one_of_indices(self.sizes(), out_int32 ? DType::kI32 : DType::kI64);
  if (sequence.dtype() != self.dtype()) {
    outputs.compute = common;
    outputs.cast_mask = 0b11;  // not the sorter
  }
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

using Side = std::optional<std::string_view>;

/// The dtype in which the sequence is compared with the number: that of both, e.g. floating for
/// integers and 2.5, or a wider one if it cannot hold the number.
DType comparison_dtype(const Tensor& sequence, const Scalar& number) {
  const DType dtype = result_type(sequence, number);
  const bool wraps = dtype == DType::kU8 && number.to_double() < 0;  // can_hold takes -1 for 255
  if (can_hold(dtype, number) && !wraps) return dtype;
  return is_floating(dtype) ? DType::kF64 : DType::kI64;
}
/// The sequence in that dtype.
Tensor comparable(const Tensor& sequence, const Scalar& number) {
  return sequence.to(comparison_dtype(sequence, number));
}
/// The number as a 0-d tensor of that dtype.
Tensor as_value(const Scalar& number, const Tensor& sequence) {
  return scalar_tensor(number, {comparison_dtype(sequence, number), sequence.device()});
}

void check_boundaries(const Tensor& boundaries) {
  LS_CHECK(boundaries.dim() == 1, ShapeError,
           "[bucketize] the boundaries must have one dimension, got shape {}.", boundaries.shape());
}

}  // namespace

LS_OP(searchsorted, Tensor(const Tensor&, const Tensor&, bool, bool, Side, OptionalTensor),
      "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool "
      "right=False, str? side=None, Tensor? sorter=None) -> Tensor")
    .doc("Indices at which values would be inserted into a sorted sequence.")
    .structured(rules::searchsorted)
    .out("Tensor_out")
    .not_differentiable("an index is an integer");
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                    Side side, OptionalTensor sorter) {
  return op_searchsorted(sorted_sequence, self, out_int32, right, side, sorter);
}

LS_OP(searchsorted_number, Tensor(const Tensor&, Scalar, bool, bool, Side, OptionalTensor),
      "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool "
      "right=False, str? side=None, Tensor? sorter=None) -> Tensor")
    .doc("Index at which a number would be inserted into a sorted sequence.")
    .composite([](const Tensor& sequence, Scalar self, bool out_int32, bool right, Side side,
                  OptionalTensor sorter) {
      return op_searchsorted(comparable(sequence, self), as_value(self, sequence), out_int32, right,
                             side, sorter);
    });

LS_OP(searchsorted_number_out,
      const Tensor&(const Tensor&, Scalar, bool, bool, Side, OptionalTensor, const Tensor&),
      "searchsorted.Scalar_out(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool "
      "right=False, str? side=None, Tensor? sorter=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("searchsorted.Scalar, written into out.")
    .composite([](const Tensor& sequence, Scalar self, bool out_int32, bool right, Side side,
                  OptionalTensor sorter, const Tensor& out) -> const Tensor& {
      return op_searchsorted.out(comparable(sequence, self), as_value(self, sequence), out_int32,
                                 right, side, sorter, out);
    });

LS_OP(bucketize, Tensor(const Tensor&, const Tensor&, bool, bool),
      "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
      "-> Tensor")
    .doc("The bucket of each value between ascending boundaries.")
    .composite([](const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
      check_boundaries(boundaries);
      return op_searchsorted(boundaries, self, out_int32, right, std::nullopt, {});
    });
Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  return op_bucketize(self, boundaries, out_int32, right);
}

LS_OP(bucketize_out, const Tensor&(const Tensor&, const Tensor&, bool, bool, const Tensor&),
      "bucketize.Tensor_out(Tensor self, Tensor boundaries, *, bool out_int32=False, bool "
      "right=False, Tensor(a!) out) -> Tensor(a!)")
    .doc("bucketize, written into out.")
    .composite([](const Tensor& self, const Tensor& boundaries, bool out_int32, bool right,
                  const Tensor& out) -> const Tensor& {
      check_boundaries(boundaries);
      return op_searchsorted.out(boundaries, self, out_int32, right, std::nullopt, {}, out);
    });

LS_OP(bucketize_number, Tensor(Scalar, const Tensor&, bool, bool),
      "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
      "-> Tensor")
    .doc("The bucket of a number between ascending boundaries.")
    .composite([](Scalar self, const Tensor& boundaries, bool out_int32, bool right) {
      check_boundaries(boundaries);
      return op_searchsorted(comparable(boundaries, self), as_value(self, boundaries), out_int32,
                             right, std::nullopt, {});
    });

LS_OP(bucketize_number_out, const Tensor&(Scalar, const Tensor&, bool, bool, const Tensor&),
      "bucketize.Scalar_out(Scalar self, Tensor boundaries, *, bool out_int32=False, bool "
      "right=False, Tensor(a!) out) -> Tensor(a!)")
    .doc("bucketize.Scalar, written into out.")
    .composite([](Scalar self, const Tensor& boundaries, bool out_int32, bool right,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_bucketize_number(self, boundaries, out_int32, right));
    });

LS_OP(bincount, Tensor(const Tensor&, OptionalTensor, int64_t),
      "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor")
    .doc("The number of occurrences of each integer in a vector, or the sum of its weights.")
    .dynamic()
    .not_differentiable("counts are integers, and weighted counts are for statistics");
Tensor bincount(const Tensor& self, OptionalTensor weights, int64_t minlength) {
  return op_bincount(self, weights, minlength);
}

LS_OP(bincount_out, const Tensor&(const Tensor&, OptionalTensor, int64_t, const Tensor&),
      "bincount.out(Tensor self, Tensor? weights=None, SymInt minlength=0, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("bincount, written into out.")
    .composite([](const Tensor& self, OptionalTensor weights, int64_t minlength,
                  const Tensor& out) -> const Tensor& {
      return clone_indices_out("bincount", out, bincount(self, weights, minlength));
    });

}  // namespace lockstep
