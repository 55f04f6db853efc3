#include "core/ops/pointwise/pointwise_rules.h"

#include "core/base/check.h"

namespace lockstep::rules {

Outputs unary(DType dtype, const Tensor& self) { return pointwise_result("", dtype, {&self}); }

Outputs numeric(std::string_view op, const Tensor& self) {
  refuse_bool(op, self, "Cast it with to(dtype).");
  return unary(self.dtype(), self);
}

Outputs floating_unary(const Tensor& self) { return unary(to_floating(self.dtype()), self); }

Outputs predicate(const Tensor& self) { return unary(DType::kBool, self); }

Outputs binary(std::string_view op, const Tensor& self, const Tensor& other) {
  return pointwise_result(op, result_type(self, other), {&self, &other});
}

Outputs comparison(std::string_view op, const Tensor& self, const Tensor& other) {
  Outputs outputs = pointwise_result(op, DType::kBool, {&self, &other});
  if (self.dtype() != other.dtype()) outputs.compute = result_type(self, other);
  return outputs;
}

DType not_bool(std::string_view op, DType dtype) {
  LS_CHECK(dtype != DType::kBool, DTypeError,
           "[{}] bool operands are not accepted: expected numbers. Cast them with to(dtype).", op);
  return dtype;
}

Outputs narrowed(Outputs outputs, std::initializer_list<const Tensor*> operands) {
  const DType dtype = outputs.specs[0].dtype;
  if (is_floating(dtype)) return outputs;
  uint64_t mask = 0;
  uint64_t bit = 1;
  for (const Tensor* operand : operands) {
    if (operand->dim() == 0 && operand->dtype() != dtype) mask |= bit;
    bit <<= 1;
  }
  if (mask != 0) {
    outputs.compute = dtype;
    outputs.cast_mask = mask;
  }
  return outputs;
}

Outputs narrowed(std::string_view op, DType dtype, const Tensor& self, const Tensor& other) {
  return narrowed(pointwise_result(op, dtype, {&self, &other}), {&self, &other});
}

Outputs numbers(std::string_view op, const Tensor& self, const Tensor& other) {
  return narrowed(op, not_bool(op, result_type(self, other)), self, other);
}

DType common_dtype(const Tensor& a, const Tensor& b, const Tensor& c) {
  return Promotion().add(a).add(b).add(c).result();
}

}  // namespace lockstep::rules
