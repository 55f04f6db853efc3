#include "kernels/meta/pointwise_layout.h"

#include <span>

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
  bool alike = first.is_contiguous();  // one shape, row-major: nothing to work out
  for (const Tensor* operand : std::span(operands).subspan(1)) {
    alike = alike && operand->is_contiguous() && same(operand->sizes(), first.sizes());
  }
  if (alike) [[likely]] {
    return one(first.sizes(), dtype);
  }
  Dims sizes = to_dims(first.sizes());
  for (const Tensor* operand : operands) sizes = broadcast(op, sizes, operand->sizes());
  Outputs outputs = one(std::move(sizes), dtype);
  keep_strides(outputs.specs[0], operands);
  return outputs;
}

}  // namespace lockstep::rules
