#include <algorithm>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "core/ops/loss/loss.h"
#include "kernels/common/classifier_products.h"
#include "kernels/cpu/loss/cross_entropy_row.h"
#include "kernels/cpu/matmul/gemm.h"

namespace lockstep::cpu {

namespace {

/// Computes the losses of a chunk's rows. With `gradients` the logits become their gradient, while
/// the row is in the cache.
template <class T, class C = ComputeType<T>>
void losses_of_chunk(const ClassifierChunk& chunk, const int64_t* targets, C* losses,
                     bool gradients) {
  parallel_for(0, chunk.rows, 1, [&](int64_t first, int64_t last) {
    std::vector<C> buffer(std::is_same_v<T, C> ? 0 : static_cast<size_t>(chunk.classes));
    for (int64_t row = first; row < last; ++row) {
      T* const x = static_cast<T*>(chunk.logits) + row * chunk.classes;
      C logsumexp;
      losses[row] = cross_entropy_of_row(x, chunk.classes, targets[row], buffer.data(), logsumexp);
      if (!gradients) continue;
      cross_entropy_gradient_of_row(x, x, chunk.classes, targets[row], logsumexp,
                                    static_cast<C>(chunk.scale), buffer.data());
    }
  });
}

template <class T, class C = ComputeType<T>>
void compute(const Out& loss, const Out& grad_input, const Out& grad_weight, const In& input,
             const In& weight, const std::vector<int64_t>& targets, int64_t reduction,
             int64_t chunk_rows) {
  const int64_t rows = input.size(0), width = input.size(1), classes = weight.size(0);
  const int64_t most = std::min(chunk_rows, rows);
  const Tensor logits = empty_tensor({most, classes}, input.dtype);
  std::vector<C> losses(static_cast<size_t>(rows));
  const auto chunk_at = [&](int64_t first) {
    return ClassifierChunk{.dtype = input.dtype,
                           .rows = std::min(most, rows - first),
                           .width = width,
                           .classes = classes,
                           .input = input.data<T>() + first * width,
                           .weight = weight.address,
                           .logits = logits.data(),
                           .scale = classifier_scale(input.dtype)};
  };
  for (int64_t first = 0; first < rows; first += most) {
    const ClassifierChunk chunk = chunk_at(first);
    gemm(chunk.product());
    losses_of_chunk<T>(chunk, targets.data() + first, losses.data() + first,
                       grad_input.defined() || grad_weight.defined());
    if (grad_input.defined()) gemm(chunk.input_gradient(grad_input.data<C>() + first * width));
    if (grad_weight.defined()) gemm(chunk.weight_gradient(grad_weight.address, first != 0));
  }
  if (rows == 0 && grad_weight.defined()) {
    gemm(chunk_at(0).weight_gradient(grad_weight.address, false));
  }
  if (reduction == static_cast<int64_t>(Reduction::kNone)) {
    std::copy(losses.begin(), losses.end(), loss.data<C>());
  } else {
    const bool mean = reduction == static_cast<int64_t>(Reduction::kMean);
    *loss.data<C>() = reduced_loss<C>(losses, targets, mean);
  }
}

void linear_cross_entropy(const Out& loss, const Out& grad_input, const Out& grad_weight,
                          const In& input, const In& weight, const In& target, int64_t reduction,
                          int64_t ignore_index, int64_t chunk_rows, BoolList) {
  const std::vector<int64_t> targets =
      read_targets("linear_cross_entropy", target, weight.size(0), ignore_index);
  with_floating_type(input.dtype, [&]<class T>() {
    compute<T>(loss, grad_input, grad_weight, input, weight, targets, reduction, chunk_rows);
  });
}

}  // namespace

LS_KERNEL(CPU, "_linear_cross_entropy", linear_cross_entropy, Strides::kContiguous);

}  // namespace lockstep::cpu
