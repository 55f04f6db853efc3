#include "train/optimizer/grad_norm.h"

#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"

namespace lockstep::train {

Tensor grad_norm(std::span<const Tensor> gradients) {
  const NoGradGuard no_grad;
  if (gradients.empty()) return zeros({}, DType::kF64);
  return norm_of_square_sums(_block_square_sums(gradients));
}

Tensor block_square_sums(std::span<const Tensor> gradients, Device device) {
  const NoGradGuard no_grad;
  return gradients.empty() ? zeros({0}, {DType::kF64, device}) : _block_square_sums(gradients);
}

Tensor norm_of_square_sums(const Tensor& sums) {
  const NoGradGuard no_grad;
  return sqrt(_ordered_sum(sums));
}

Tensor clip_factor(const Tensor& norm, double limit) {
  const NoGradGuard no_grad;
  // 1e-6 as in PyTorch's clip_grad_norm_: it keeps the factor finite.
  return where(gt(norm, limit), div(full_like(norm, limit), norm + 1e-6), ones_like(norm));
}

}  // namespace lockstep::train
