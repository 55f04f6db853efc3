#include "core/ops/pointwise/pointwise_division.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_rules.h"

namespace lockstep {

namespace rules {
namespace {

void check_mode(std::optional<std::string_view> mode) {
  LS_CHECK(!mode || *mode == "trunc" || *mode == "floor", Error,
           "[div] unknown rounding mode: expected \"trunc\", \"floor\" or none, got \"{}\".",
           mode.value_or(""));
}

DType quotient(DType dtype, std::optional<std::string_view> mode) {
  check_mode(mode);
  return mode ? not_bool("div", dtype) : to_floating(dtype);
}

Outputs div_mode(const Tensor& self, const Tensor& other, std::optional<std::string_view> mode) {
  return narrowed("div", quotient(result_type(self, other), mode), self, other);
}
Outputs div_mode_number(const Tensor& self, Scalar other, std::optional<std::string_view> mode) {
  return unary(quotient(result_type(self, other), mode), self);
}
Outputs fmod(const Tensor& self, const Tensor& other) { return numbers("fmod", self, other); }
Outputs fmod_number(const Tensor& self, Scalar other) {
  return unary(not_bool("fmod", result_type(self, other)), self);
}
Outputs remainder(const Tensor& self, const Tensor& other) {
  return numbers("remainder", self, other);
}
Outputs remainder_number(const Tensor& self, Scalar other) {
  return unary(not_bool("remainder", result_type(self, other)), self);
}
Outputs remainder_of_number(Scalar self, const Tensor& other) {
  return unary(not_bool("remainder", result_type(other, self)), other);
}

}  // namespace
}  // namespace rules

namespace {

/// Gradients of the remainder self - other * quotient, with a quotient rounded by `rounding_mode`.
Gradients rest_gradients(VjpContext& ctx, const Tensor& grad, std::string_view rounding_mode) {
  return ctx.gradients([&] { return ctx.unbroadcast(grad, 0); },
                       [&] {
                         const Tensor times = div(ctx.saved(0), ctx.saved(1), rounding_mode);
                         return ctx.unbroadcast(neg(mul(grad, times)), 1);
                       });
}

}  // namespace

using OptionalText = std::optional<std::string_view>;

LS_OP(div_mode, Tensor(const Tensor&, const Tensor&, OptionalText),
      "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor")
    .doc("Elementwise quotient, rounded by \"trunc\", \"floor\" or not at all.")
    .structured(rules::div_mode)
    .batching(batching::elementwise)
    .in_place()
    .out("out_mode")
    .saves({"self for other", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& other = ctx.saved(1);
      const bool rounded = ctx.argument<OptionalText>(2).has_value();
      return ctx.gradients(
          [&] { return ctx.unbroadcast(rounded ? zeros_like(grad) : div(grad, other), 0); },
          [&] {
            if (rounded) return ctx.unbroadcast(zeros_like(grad), 1);
            const Tensor slope = div(div(ctx.saved(0), other), other);
            return ctx.unbroadcast(neg(mul(grad, slope)), 1);
          });
    });
Tensor div(const Tensor& self, const Tensor& other, OptionalText rounding_mode) {
  return op_div_mode(self, other, rounding_mode);
}

LS_OP(div_mode_number, Tensor(const Tensor&, Scalar, OptionalText),
      "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor")
    .doc("self divided by a number, rounded by \"trunc\", \"floor\" or not at all.")
    .structured(rules::div_mode_number)
    .batching(batching::elementwise)
    .in_place()
    .out("Scalar_mode_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        if (ctx.argument<OptionalText>(2)) return zeros_like(grad);
        return div(grad, ctx.argument<Scalar>(1));
      });
    });
Tensor div(const Tensor& self, const Scalar& other, OptionalText rounding_mode) {
  return op_div_mode_number(self, other, rounding_mode);
}

LS_OP(fmod, Tensor(const Tensor&, const Tensor&),
      "fmod.Tensor(Tensor self, Tensor other) -> Tensor")
    .doc("Remainder of the division with the quotient rounded towards 0; it has the sign of self.")
    .structured(rules::fmod)
    .batching(batching::elementwise)
    .in_place()
    .out("Tensor_out")
    .saves({"self for other", "other for other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return rest_gradients(ctx, grad, "trunc");
    });
Tensor fmod(const Tensor& self, const Tensor& other) { return op_fmod(self, other); }

LS_OP(fmod_number, Tensor(const Tensor&, Scalar),
      "fmod.Scalar(Tensor self, Scalar other) -> Tensor")
    .doc(
        "Remainder of the division by a number with the quotient rounded towards 0; it has the "
        "sign of self.")
    .structured(rules::fmod_number)
    .batching(batching::elementwise)
    .in_place()
    .out("Scalar_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad; });
    });
Tensor fmod(const Tensor& self, const Scalar& other) { return op_fmod_number(self, other); }

LS_OP(remainder, Tensor(const Tensor&, const Tensor&),
      "remainder.Tensor(Tensor self, Tensor other) -> Tensor")
    .doc("Remainder of the division with the quotient rounded down; it has the sign of other.")
    .structured(rules::remainder)
    .batching(batching::elementwise)
    .in_place()
    .out("Tensor_out")
    .saves({"self for other", "other for other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return rest_gradients(ctx, grad, "floor");
    });
Tensor remainder(const Tensor& self, const Tensor& other) { return op_remainder(self, other); }

LS_OP(remainder_number, Tensor(const Tensor&, Scalar),
      "remainder.Scalar(Tensor self, Scalar other) -> Tensor")
    .doc(
        "Remainder of the division by a number with the quotient rounded down; it has the sign of "
        "other.")
    .structured(rules::remainder_number)
    .batching(batching::elementwise)
    .in_place()
    .out("Scalar_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad; });
    });
Tensor remainder(const Tensor& self, const Scalar& other) {
  return op_remainder_number(self, other);
}

LS_OP(remainder_of_number, Tensor(Scalar, const Tensor&),
      "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
    .doc("Remainder of the division of a number with the quotient rounded down.")
    .structured(rules::remainder_of_number)
    .batching(batching::elementwise)
    .out("Scalar_Tensor_out")
    .saves({"other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor& other = ctx.saved(0);
        const Tensor self = full({}, ctx.argument<Scalar>(0), other.options());
        return neg(mul(grad, div(self, other, "floor")));
      });
    });
Tensor remainder(const Scalar& self, const Tensor& other) {
  return op_remainder_of_number(self, other);
}

}  // namespace lockstep
