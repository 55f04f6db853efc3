#include "train/grad_norm.h"

#include <vector>

#include "autograd/grad_mode.h"
#include "core/ops/factory.h"
#include "core/ops/optimizer.h"
#include "core/ops/pointwise.h"
#include "core/ops/shape.h"

namespace lockstep::train {

Tensor grad_norm(std::span<const Tensor> gradients) {
  const NoGradGuard no_grad;
  std::vector<Tensor> sums;
  sums.reserve(gradients.size());
  for (const Tensor& gradient : gradients) sums.push_back(_block_square_sums(gradient));
  return norm_of_square_sums(sums);
}

Tensor norm_of_square_sums(TensorList sums) {
  const NoGradGuard no_grad;
  if (sums.empty()) return zeros({}, DType::kF64);
  return sqrt(_ordered_sum(cat(sums)));
}

Tensor clip_factor(const Tensor& norm, double limit) {
  const NoGradGuard no_grad;
  // The small term is PyTorch's; it keeps the factor finite.
  return where(gt(norm, limit), div(full_like(norm, limit), norm + 1e-6), ones_like(norm));
}

}  // namespace lockstep::train
