#include <algorithm>

#include "core/dispatch/kernel.h"
#include "core/ops/loss/loss.h"
#include "kernels/common/classifier_products.h"
#include "kernels/cuda/loss/cross_entropy.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

const FaultKind kOfLinearCrossEntropy("linear_cross_entropy", "target out of range");

/// Address of element `i` of a contiguous tensor.
char* element(const TensorArg& tensor, int64_t i) {
  return static_cast<char*>(tensor.address) + i * static_cast<int64_t>(size_of(tensor.dtype));
}

/// The targets of `count` rows from `first` on.
IndexList targets_of(IndexList all, const In& target, int64_t first, int64_t count) {
  all.data = element(target, first);
  all.count = count;
  return all;
}

void linear_cross_entropy(const Out& loss, const Out& grad_input, const Out& grad_weight,
                          const In& input, const In& weight, const In& target, int64_t reduction,
                          int64_t ignore_index, int64_t chunk_rows, BoolList) {
  const int64_t rows = input.size(0), width = input.size(1), classes = weight.size(0);
  const int64_t most = std::min(chunk_rows, rows);
  const bool is_each = reduction == static_cast<int64_t>(Reduction::kNone);
  const IndexList all = class_list(kOfLinearCrossEntropy, target, classes, ignore_index);
  const size_t statistic = size_of(loss.dtype);
  const Workspace logits(static_cast<size_t>(most * classes) * size_of(input.dtype));
  const Workspace logsumexp(static_cast<size_t>(most) * statistic);
  const Workspace losses(static_cast<size_t>(rows) * statistic);
  const auto chunk_at = [&](int64_t first) {
    return ClassifierChunk{.dtype = input.dtype,
                           .rows = std::min(most, rows - first),
                           .width = width,
                           .classes = classes,
                           .input = element(input, first * width),
                           .weight = weight.address,
                           .logits = logits.data(),
                           .scale = classifier_scale(input.dtype)};
  };
  for (int64_t first = 0; first < rows; first += most) {
    const ClassifierChunk chunk = chunk_at(first);
    const IndexList targets = targets_of(all, target, first, chunk.rows);
    gemm(chunk.product());
    queue_rows(input.dtype, {.targets = targets,
                             .x = chunk.logits,
                             .logsumexp = logsumexp.data(),
                             .losses = losses.data<char>() + static_cast<size_t>(first) * statistic,
                             .each = is_each ? element(loss, first) : nullptr,
                             .rows = chunk.rows,
                             .classes = classes});
    if (!grad_input.defined() && !grad_weight.defined()) continue;
    queue_backward(input.dtype, {.targets = targets,
                                 .x = chunk.logits,
                                 .logsumexp = logsumexp.data(),
                                 .grads = nullptr,
                                 .used = nullptr,
                                 .out = chunk.logits,
                                 .rows = chunk.rows,
                                 .classes = classes,
                                 .grad_of_each = false,
                                 .scale = chunk.scale});
    if (grad_input.defined()) gemm(chunk.input_gradient(element(grad_input, first * width)));
    if (grad_weight.defined()) gemm(chunk.weight_gradient(grad_weight.address, first != 0));
  }
  if (rows == 0 && grad_weight.defined()) {
    gemm(chunk_at(0).weight_gradient(grad_weight.address, false));
  }
  if (is_each) return;
  queue_total(input.dtype, {.targets = all,
                            .losses = losses.data(),
                            .out = loss.address,
                            .rows = rows,
                            .is_mean = reduction == static_cast<int64_t>(Reduction::kMean)});
}

}  // namespace

LS_KERNEL(CUDA, "_linear_cross_entropy", linear_cross_entropy, Strides::kContiguous);

}  // namespace lockstep::cuda
