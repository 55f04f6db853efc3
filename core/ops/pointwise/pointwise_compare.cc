#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_rules.h"

namespace lockstep {

namespace rules {
namespace {

Outputs eq(const Tensor& self, const Tensor& other) { return comparison("eq", self, other); }
Outputs ne(const Tensor& self, const Tensor& other) { return comparison("ne", self, other); }
Outputs lt(const Tensor& self, const Tensor& other) { return comparison("lt", self, other); }
Outputs le(const Tensor& self, const Tensor& other) { return comparison("le", self, other); }
Outputs gt(const Tensor& self, const Tensor& other) { return comparison("gt", self, other); }
Outputs ge(const Tensor& self, const Tensor& other) { return comparison("ge", self, other); }
Outputs number_comparison(const Tensor& self, Scalar other) {
  Outputs outputs = unary(DType::kBool, self);
  const DType common = result_type(self, other);
  if (common != self.dtype()) outputs.compute = common;
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

constexpr std::string_view kStep = "the result is bool";

}  // namespace

// The six comparisons differ in name and relation only.
#define LS_COMPARISON(name, relation)                                                     \
  LS_OP(name, Tensor(const Tensor&, const Tensor&),                                       \
        #name ".Tensor(Tensor self, Tensor other) -> Tensor")                             \
      .doc("self " relation " other, a bool tensor.")                                     \
      .structured(rules::name)                                                            \
      .batching(batching::elementwise)                                                    \
      .in_place()                                                                         \
      .out("Tensor_out")                                                                  \
      .not_differentiable(kStep);                                                         \
  Tensor name(const Tensor& self, const Tensor& other) { return op_##name(self, other); } \
  LS_OP(name##_number, Tensor(const Tensor&, Scalar),                                     \
        #name ".Scalar(Tensor self, Scalar other) -> Tensor")                             \
      .doc("self " relation " a number, a bool tensor.")                                  \
      .structured(rules::number_comparison)                                               \
      .batching(batching::elementwise)                                                    \
      .in_place()                                                                         \
      .out("Scalar_out")                                                                  \
      .not_differentiable(kStep);                                                         \
  Tensor name(const Tensor& self, const Scalar& other) { return op_##name##_number(self, other); }

LS_COMPARISON(eq, "==")
LS_COMPARISON(ne, "!=")
LS_COMPARISON(lt, "<")
LS_COMPARISON(le, "<=")
LS_COMPARISON(gt, ">")
LS_COMPARISON(ge, ">=")
#undef LS_COMPARISON

LS_OP(logical_not, Tensor(const Tensor&), "logical_not(Tensor self) -> Tensor")
    .doc("True where self is zero.")
    .structured(rules::predicate)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .not_differentiable(kStep);
Tensor logical_not(const Tensor& self) { return op_logical_not(self); }

LS_OP(isnan, Tensor(const Tensor&), "isnan(Tensor self) -> Tensor")
    .doc("True where self is not a number.")
    .structured(rules::predicate)
    .batching(batching::elementwise)
    .out()
    .not_differentiable(kStep);
Tensor isnan(const Tensor& self) { return op_isnan(self); }

LS_OP(isfinite, Tensor(const Tensor&), "isfinite(Tensor self) -> Tensor")
    .doc("True where self is neither infinite nor NaN.")
    .structured(rules::predicate)
    .batching(batching::elementwise)
    .not_differentiable(kStep);
Tensor isfinite(const Tensor& self) { return op_isfinite(self); }

}  // namespace lockstep
