#include "core/ops/pointwise/pointwise_logic.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/pointwise/number_tensor.h"
#include "core/ops/pointwise/pointwise_rules.h"

namespace lockstep {

namespace rules {
namespace {

DType integral(std::string_view op, DType dtype, bool bools) {
  LS_CHECK(is_integral(dtype) || (bools && dtype == DType::kBool), DTypeError,
           "[{}] expected integers{}, got operands of {}. Cast them with to(dtype).", op,
           bools ? " or bools" : "", to_string(dtype));
  return dtype;
}

Outputs bits(std::string_view op, const Tensor& self, const Tensor& other, bool bools = true) {
  return narrowed(op, integral(op, result_type(self, other), bools), self, other);
}

Outputs bits(std::string_view op, const Tensor& self, const Scalar& other, bool bools = true) {
  return unary(integral(op, result_type(self, other), bools), self);
}

Outputs logical_and(const Tensor& self, const Tensor& other) {
  return comparison("logical_and", self, other);
}
Outputs logical_or(const Tensor& self, const Tensor& other) {
  return comparison("logical_or", self, other);
}
Outputs logical_xor(const Tensor& self, const Tensor& other) {
  return comparison("logical_xor", self, other);
}
Outputs isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool) {
  LS_CHECK(self.dtype() == other.dtype(), DTypeError,
           "[isclose] dtypes differ: got {} and {}. Cast one with to(dtype).", to_string(self),
           to_string(other));
  LS_CHECK(rtol >= 0 && atol >= 0, Error,
           "[isclose] tolerances must not be negative: got rtol {} and atol {}.", rtol, atol);
  return pointwise_result("isclose", DType::kBool, {&self, &other});
}
Outputs bitwise_and(const Tensor& self, const Tensor& other) {
  return bits("bitwise_and", self, other);
}
Outputs bitwise_or(const Tensor& self, const Tensor& other) {
  return bits("bitwise_or", self, other);
}
Outputs bitwise_xor(const Tensor& self, const Tensor& other) {
  return bits("bitwise_xor", self, other);
}
Outputs bitwise_left_shift(const Tensor& self, const Tensor& other) {
  return bits("bitwise_left_shift", self, other, false);
}
Outputs bitwise_right_shift(const Tensor& self, const Tensor& other) {
  return bits("bitwise_right_shift", self, other, false);
}
Outputs bitwise_and_number(const Tensor& self, Scalar other) {
  return bits("bitwise_and", self, other);
}
Outputs bitwise_or_number(const Tensor& self, Scalar other) {
  return bits("bitwise_or", self, other);
}
Outputs bitwise_xor_number(const Tensor& self, Scalar other) {
  return bits("bitwise_xor", self, other);
}
Outputs bitwise_left_shift_number(const Tensor& self, Scalar other) {
  return bits("bitwise_left_shift", self, other, false);
}
Outputs bitwise_right_shift_number(const Tensor& self, Scalar other) {
  return bits("bitwise_right_shift", self, other, false);
}
Outputs bitwise_not(const Tensor& self) {
  return unary(integral("bitwise_not", self.dtype(), true), self);
}

}  // namespace
}  // namespace rules

namespace {

constexpr std::string_view kTruth = "the result is bool";
constexpr std::string_view kInteger = "the result is an integer";

}  // namespace

#define LS_LOGICAL(name, text)                                                                     \
  LS_OP(name, Tensor(const Tensor&, const Tensor&), #name "(Tensor self, Tensor other) -> Tensor") \
      .doc(text)                                                                                   \
      .structured(rules::name)                                                                     \
      .batching(batching::elementwise)                                                             \
      .in_place()                                                                                  \
      .out()                                                                                       \
      .not_differentiable(kTruth);                                                                 \
  Tensor name(const Tensor& self, const Tensor& other) { return op_##name(self, other); }

LS_LOGICAL(logical_and, "True where both are other than zero.")
LS_LOGICAL(logical_or, "True where one or both are other than zero.")
LS_LOGICAL(logical_xor, "True where just one is other than zero.")
#undef LS_LOGICAL

// `number` and `number_out` are ATen's names of the overload with a number and of its out= form.
#define LS_BITWISE(name, text, number, number_out)                                                 \
  LS_OP(name, Tensor(const Tensor&, const Tensor&),                                                \
        #name ".Tensor(Tensor self, Tensor other) -> Tensor")                                      \
      .doc(text)                                                                                   \
      .structured(rules::name)                                                                     \
      .batching(batching::elementwise)                                                             \
      .in_place()                                                                                  \
      .out("Tensor_out")                                                                           \
      .not_differentiable(kInteger);                                                               \
  Tensor name(const Tensor& self, const Tensor& other) { return op_##name(self, other); }          \
  LS_OP(name##_number, Tensor(const Tensor&, Scalar),                                              \
        #name "." number "(Tensor self, Scalar other) -> Tensor")                                  \
      .doc(text)                                                                                   \
      .structured(rules::name##_number)                                                            \
      .batching(batching::elementwise)                                                             \
      .in_place()                                                                                  \
      .out(number_out)                                                                             \
      .not_differentiable(kInteger);                                                               \
  Tensor name(const Tensor& self, const Scalar& other) { return op_##name##_number(self, other); } \
  LS_OP(name##_of_number, Tensor(Scalar, const Tensor&),                                           \
        #name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor")                               \
      .doc(text)                                                                                   \
      .composite([](Scalar self, const Tensor& other) {                                            \
        return op_##name(number_tensor(self, other), other);                                       \
      });                                                                                          \
  Tensor name(const Scalar& self, const Tensor& other) {                                           \
    return op_##name##_of_number(self, other);                                                     \
  }                                                                                                \
  LS_OP(name##_of_number_out, const Tensor&(Scalar, const Tensor&, const Tensor&),                 \
        #name ".Scalar_Tensor_out(Scalar self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")    \
      .doc(text)                                                                                   \
      .composite([](Scalar self, const Tensor& other, const Tensor& out) -> const Tensor& {        \
        return op_##name.out(number_tensor(self, other), other, out);                              \
      });

LS_BITWISE(bitwise_and, "The bits set in both.", "Scalar", "Scalar_out")
LS_BITWISE(bitwise_or, "The bits set in one or both.", "Scalar", "Scalar_out")
LS_BITWISE(bitwise_xor, "The bits set in exactly one.", "Scalar", "Scalar_out")
LS_BITWISE(bitwise_left_shift, "self shifted left by other bits.", "Tensor_Scalar",
           "Tensor_Scalar_out")
LS_BITWISE(bitwise_right_shift, "self shifted right by other bits; keeps the sign.",
           "Tensor_Scalar", "Tensor_Scalar_out")
#undef LS_BITWISE

LS_OP(bitwise_not, Tensor(const Tensor&), "bitwise_not(Tensor self) -> Tensor")
    .doc("Every bit inverted; logical_not for bools.")
    .structured(rules::bitwise_not)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .not_differentiable(kInteger);
Tensor bitwise_not(const Tensor& self) { return op_bitwise_not(self); }

LS_OP(isinf, Tensor(const Tensor&), "isinf(Tensor self) -> Tensor")
    .doc("True where self is infinite.")
    .structured(rules::predicate)
    .batching(batching::elementwise)
    .out()
    .not_differentiable(kTruth);
Tensor isinf(const Tensor& self) { return op_isinf(self); }

LS_OP(isclose, Tensor(const Tensor&, const Tensor&, double, double, bool),
      "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
      "equal_nan=False) -> Tensor")
    .doc("True where |self - other| <= atol + rtol |other|, or both are equal.")
    .structured(rules::isclose)
    .batching(batching::elementwise)
    .not_differentiable(kTruth);
Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return op_isclose(self, other, rtol, atol, equal_nan);
}

}  // namespace lockstep
