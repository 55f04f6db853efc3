#include "kernels/meta/pointwise_layout.h"

namespace lockstep::rules {

namespace {

/// Row-major unless every operand of the full shape has the same other dense strides.
void keep_strides(OutputSpec& spec, std::initializer_list<const Tensor*> operands) {
  const Tensor* example = nullptr;
  for (const Tensor* operand : operands) {
    if (!same(operand->sizes(), spec.sizes)) continue;
    if (operand->is_contiguous()) return;
    if (example != nullptr && !same(example->strides(), operand->strides())) return;
    example = operand;
  }
  if (example != nullptr && is_dense(example->sizes(), example->strides())) {
    spec.strides = to_dims(example->strides());
  }
}

}  // namespace

Outputs pointwise_result(std::string_view op, DType dtype,
                         std::initializer_list<const Tensor*> operands) {
  const Tensor& first = **operands.begin();
  bool alike = true;  // one shape, row-major: nothing to work out
  for (const Tensor* operand : operands) {
    alike = alike && operand->is_contiguous() && same(operand->sizes(), first.sizes());
  }
  if (alike) [[likely]] {
    return one(to_dims(first.sizes()), dtype);
  }
  Dims sizes = to_dims(first.sizes());
  for (const Tensor* operand : operands) sizes = broadcast(op, sizes, operand->sizes());
  Outputs outputs = one(std::move(sizes), dtype);
  keep_strides(outputs.specs[0], operands);
  return outputs;
}

}  // namespace lockstep::rules
