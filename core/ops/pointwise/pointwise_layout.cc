#include "core/ops/pointwise/pointwise_layout.h"

#include <span>

#include "core/tensor/memory_format.h"

namespace lockstep::rules {

namespace {

/// Whether all operands have the result's shape and the same strides, which leave no gaps.
bool same_dense_layout(const OutputSpec& spec, std::initializer_list<const Tensor*> operands) {
  const Tensor& first = **operands.begin();
  for (const Tensor* operand : operands) {
    if (!same(operand->sizes(), spec.sizes)) return false;
    if (!same(operand->strides(), first.strides())) return false;
  }
  return is_dense(first.sizes(), first.strides());
}

void keep_strides(OutputSpec& spec, std::initializer_list<const Tensor*> operands) {
  bool row_major = true;
  for (const Tensor* operand : operands) row_major = row_major && operand->is_contiguous();
  if (row_major) return;
  if (same_dense_layout(spec, operands)) {
    spec.strides = to_dims((*operands.begin())->strides());
    return;
  }
  SmallVector<Dims, 3> stretched;
  SmallVector<IntList, 3> examples;
  for (const Tensor* operand : operands) {
    stretched.push_back(broadcast_strides(operand->sizes(), operand->strides(), spec.sizes));
  }
  for (const Dims& strides : stretched) examples.push_back(strides);
  spec.strides = dense_strides(spec.sizes, examples);
}

}  // namespace

Outputs pointwise_result(std::string_view op, DType dtype,
                         std::initializer_list<const Tensor*> operands) {
  const Tensor& first = **operands.begin();
  bool alike = first.is_contiguous();  // fast path: same shape, row-major
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
