#include "train/grad_norm.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "core/ops/optimizer.h"

namespace lockstep::train {

double grad_norm(std::span<const Tensor> gradients) {
  const NoGradGuard no_grad;
  double sum = 0;
  for (const Tensor& gradient : gradients) {
    const Tensor blocks = _block_square_sums(gradient);
    const double* values = blocks.data<double>();
    for (int64_t i = 0; i < blocks.numel(); ++i) sum += values[i];
  }
  return std::sqrt(sum);
}

double clip_factor(double norm, double limit) {
  // The small term is PyTorch's; it keeps the factor finite.
  return limit > 0 && norm > limit ? limit / (norm + 1e-6) : 1.0;
}

}  // namespace lockstep::train
