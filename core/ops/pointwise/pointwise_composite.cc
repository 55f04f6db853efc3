#include "core/ops/pointwise/pointwise_composite.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_division.h"
#include "core/ops/pointwise/pointwise_formula.h"

namespace lockstep {

namespace {

Tensor in_f64(const Tensor& tensor) { return tensor.to(DType::kF64); }
/// The number as one of float64, in which it cannot overflow.
Scalar in_f64(const Scalar& number) { return Scalar(number.to_double()); }

/// Writes the result of `op` into self. Throws DTypeError for floats into integers.
const Tensor& write(std::string_view op, const Tensor& self, const Tensor& result) {
  LS_CHECK(is_floating(self.dtype()) || !is_floating(result.dtype()), DTypeError,
           "[{}] the result is {}, which {} does not hold. Use the form that is not in place.", op,
           to_string(result.dtype()), to_string(self.dtype()));
  return copy_(self, result);
}

}  // namespace

LS_OP(true_divide, Tensor(const Tensor&, const Tensor&),
      "true_divide.Tensor(Tensor self, Tensor other) -> Tensor")
    .doc("div by another name.")
    .composite([](const Tensor& self, const Tensor& other) { return div(self, other); });
Tensor true_divide(const Tensor& self, const Tensor& other) { return op_true_divide(self, other); }
LS_OP(true_divide_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "true_divide.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("true_divide, written into out.")
    .composite([](const Tensor& self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_true_divide(self, other));
    });
LS_OP(true_divide_in_place, const Tensor&(const Tensor&, const Tensor&),
      "true_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    .doc("div_ by another name.")
    .composite([](const Tensor& self, const Tensor& other) -> const Tensor& {
      return div_(self, other);
    });
LS_OP(true_divide_number, Tensor(const Tensor&, Scalar),
      "true_divide.Scalar(Tensor self, Scalar other) -> Tensor")
    .doc("div by a number by another name.")
    .composite([](const Tensor& self, Scalar other) { return div(self, other); });
LS_OP(true_divide_number_in_place, const Tensor&(const Tensor&, Scalar),
      "true_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)")
    .doc("div_ by a number by another name.")
    .composite([](const Tensor& self, Scalar other) -> const Tensor& { return div_(self, other); });

LS_OP(floor_divide, Tensor(const Tensor&, const Tensor&),
      "floor_divide(Tensor self, Tensor other) -> Tensor")
    .doc("The quotient rounded down.")
    .composite([](const Tensor& self, const Tensor& other) { return div(self, other, "floor"); });
Tensor floor_divide(const Tensor& self, const Tensor& other) {
  return op_floor_divide(self, other);
}
LS_OP(floor_divide_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "floor_divide.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("floor_divide, written into out.")
    .composite([](const Tensor& self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_floor_divide(self, other));
    });
LS_OP(floor_divide_in_place, const Tensor&(const Tensor&, const Tensor&),
      "floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    .doc("floor_divide, written into self.")
    .composite([](const Tensor& self, const Tensor& other) -> const Tensor& {
      // The derivative needs self as it was.
      return write("floor_divide_", self, op_floor_divide(self.clone(), other));
    });
LS_OP(floor_divide_number, Tensor(const Tensor&, Scalar),
      "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor")
    .doc("The quotient by a number, rounded down.")
    .composite([](const Tensor& self, Scalar other) { return div(self, other, "floor"); });
LS_OP(floor_divide_number_out, const Tensor&(const Tensor&, Scalar, const Tensor&),
      "floor_divide.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("floor_divide, written into out.")
    .composite([](const Tensor& self, Scalar other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_floor_divide_number(self, other));
    });
LS_OP(floor_divide_number_in_place, const Tensor&(const Tensor&, Scalar),
      "floor_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)")
    .doc("floor_divide, written into self.")
    .composite([](const Tensor& self, Scalar other) -> const Tensor& {
      // The derivative needs self as it was.
      return write("floor_divide_", self, op_floor_divide_number(self.clone(), other));
    });

LS_OP(float_power, Tensor(const Tensor&, const Tensor&),
      "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
    .doc("pow in float64.")
    .composite([](const Tensor& self, const Tensor& exponent) {
      return pow(in_f64(self), in_f64(exponent));
    });
Tensor float_power(const Tensor& self, const Tensor& exponent) {
  return op_float_power(self, exponent);
}
LS_OP(float_power_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "float_power.Tensor_Tensor_out(Tensor self, Tensor exponent, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("float_power, written into out.")
    .composite([](const Tensor& self, const Tensor& exponent, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_float_power(self, exponent));
    });
LS_OP(float_power_in_place, const Tensor&(const Tensor&, const Tensor&),
      "float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)")
    .doc("float_power, written into self.")
    .composite([](const Tensor& self, const Tensor& exponent) -> const Tensor& {
      return write("float_power_", self, pow(in_f64(self.clone()), in_f64(exponent)));
    });
LS_OP(float_power_of_number, Tensor(Scalar, const Tensor&),
      "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor")
    .doc("A number to the power of exponent, in float64.")
    .composite([](Scalar self, const Tensor& exponent) {
      return pow(in_f64(self), in_f64(exponent));
    });
LS_OP(float_power_of_number_out, const Tensor&(Scalar, const Tensor&, const Tensor&),
      "float_power.Scalar_out(Scalar self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("float_power, written into out.")
    .composite([](Scalar self, const Tensor& exponent, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_float_power_of_number(self, exponent));
    });
LS_OP(float_power_number, Tensor(const Tensor&, Scalar),
      "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
    .doc("self to the power of a number, in float64.")
    .composite([](const Tensor& self, Scalar exponent) {
      return pow(in_f64(self), in_f64(exponent));
    });
LS_OP(float_power_number_out, const Tensor&(const Tensor&, Scalar, const Tensor&),
      "float_power.Tensor_Scalar_out(Tensor self, Scalar exponent, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("float_power, written into out.")
    .composite([](const Tensor& self, Scalar exponent, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_float_power_number(self, exponent));
    });
LS_OP(float_power_number_in_place, const Tensor&(const Tensor&, Scalar),
      "float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)")
    .doc("float_power, written into self.")
    .composite([](const Tensor& self, Scalar exponent) -> const Tensor& {
      return write("float_power_", self, pow(in_f64(self.clone()), in_f64(exponent)));
    });

LS_OP(ldexp, Tensor(const Tensor&, const Tensor&),
      "ldexp.Tensor(Tensor self, Tensor other) -> Tensor")
    .doc("self * 2^other.")
    .composite([](const Tensor& self, const Tensor& other) { return mul(self, pow(2.0, other)); });
Tensor ldexp(const Tensor& self, const Tensor& other) { return op_ldexp(self, other); }
LS_OP(ldexp_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "ldexp.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("ldexp, written into out.")
    .composite([](const Tensor& self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_ldexp(self, other));
    });
LS_OP(ldexp_in_place, const Tensor&(const Tensor&, const Tensor&),
      "ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    .doc("ldexp, written into self.")
    .composite([](const Tensor& self, const Tensor& other) -> const Tensor& {
      return mul_(self, pow(2.0, other));
    });

}  // namespace lockstep
