#include "core/ops/sort/membership.h"

#include <limits>

#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/sort.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

/// NaN equals nothing, and has no place among sorted numbers that a search would pass rightly: each
/// gives way to the least number, if there is one.
Tensor without_nan(const Tensor& numbers) {
  if (!is_floating(numbers.dtype())) return numbers;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor is_nan = isnan(numbers);
  const Tensor least = amin(masked_fill(numbers, is_nan, kInfinity), {0});
  return where(logical_and(is_nan, logical_not(all(is_nan))), least, numbers);
}

Tensor members(const Tensor& elements, const Tensor& tests, bool invert) {
  const TensorOptions flags{DType::kBool, elements.device()};
  if (tests.numel() == 0) return full(elements.sizes(), invert, flags);
  DType common = result_type(elements, tests);
  // All elements of integers, 0-d ones too, are compared as they are.
  if (!is_floating(common)) common = promote(elements.dtype(), tests.dtype());
  if (common == DType::kBool) common = DType::kU8;  // bools are not looked up
  const Tensor sorted =
      std::get<0>(sort(without_nan(tests.detach().to(common).reshape({tests.numel()}))));
  const Tensor values = elements.detach().to(common);
  const Tensor place = clamp_max(searchsorted(sorted, values), tests.numel() - 1);
  const Tensor found = eq(index_select(sorted, 0, place.flatten()).reshape(values.sizes()), values);
  return invert ? logical_not(found) : found;
}

/// The number as a tensor that does not widen the dtype of `other`.
Tensor as_tensor(const Scalar& number, const Tensor& other) {
  return scalar_tensor(number, {number.is_floating() ? DType::kF64 : DType::kI64, other.device()});
}

}  // namespace

LS_OP(msort, Tensor(const Tensor&), "msort(Tensor self) -> Tensor")
    .doc("The elements in order along the first dimension.")
    .composite([](const Tensor& self) { return std::get<0>(sort(self, 0)); });
Tensor msort(const Tensor& self) { return op_msort(self); }
LS_OP(msort_out, const Tensor&(const Tensor&, const Tensor&),
      "msort.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("msort, written into out.")
    .composite([](const Tensor& self, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_msort(self));
    });

LS_OP(isin, Tensor(const Tensor&, const Tensor&, bool, bool),
      "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
      "invert=False) -> Tensor")
    .doc("Whether each element is one of test_elements.")
    .composite([](const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
      return members(elements, test_elements, invert);
    });
Tensor isin(const Tensor& elements, const Tensor& test_elements, bool invert) {
  return op_isin(elements, test_elements, false, invert);
}
LS_OP(isin_out, const Tensor&(const Tensor&, const Tensor&, bool, bool, const Tensor&),
      "isin.Tensor_Tensor_out(Tensor elements, Tensor test_elements, *, bool "
      "assume_unique=False, bool invert=False, Tensor(a!) out) -> Tensor(a!)")
    .doc("isin, written into out.")
    .composite([](const Tensor& elements, const Tensor& test_elements, bool assume_unique,
                  bool invert, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_isin(elements, test_elements, assume_unique, invert));
    });
LS_OP(isin_number, Tensor(const Tensor&, Scalar, bool, bool),
      "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
      "invert=False) -> Tensor")
    .doc("Whether each element equals a number.")
    .composite([](const Tensor& elements, Scalar test_element, bool, bool invert) {
      return members(elements, as_tensor(test_element, elements), invert);
    });
LS_OP(isin_number_out, const Tensor&(const Tensor&, Scalar, bool, bool, const Tensor&),
      "isin.Tensor_Scalar_out(Tensor elements, Scalar test_element, *, bool "
      "assume_unique=False, bool invert=False, Tensor(a!) out) -> Tensor(a!)")
    .doc("isin, written into out.")
    .composite([](const Tensor& elements, Scalar test_element, bool assume_unique, bool invert,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_isin_number(elements, test_element, assume_unique, invert));
    });
LS_OP(number_isin, Tensor(Scalar, const Tensor&, bool, bool),
      "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
      "invert=False) -> Tensor")
    .doc("Whether a number is one of test_elements.")
    .composite([](Scalar element, const Tensor& test_elements, bool, bool invert) {
      return members(as_tensor(element, test_elements), test_elements, invert);
    });
LS_OP(number_isin_out, const Tensor&(Scalar, const Tensor&, bool, bool, const Tensor&),
      "isin.Scalar_Tensor_out(Scalar element, Tensor test_elements, *, bool "
      "assume_unique=False, bool invert=False, Tensor(a!) out) -> Tensor(a!)")
    .doc("isin, written into out.")
    .composite([](Scalar element, const Tensor& test_elements, bool assume_unique, bool invert,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_number_isin(element, test_elements, assume_unique, invert));
    });

}  // namespace lockstep
