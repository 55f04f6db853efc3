#include "train/grad_norm.h"

#include <cmath>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/device.h"
#include "core/ops/optimizer.h"
#include "core/ops/shape.h"

namespace lockstep::train {

PendingGradNorm::PendingGradNorm(std::span<const Tensor> gradients, ReadBack& numbers) {
  const NoGradGuard no_grad;
  std::vector<Tensor> sums;
  sums.reserve(gradients.size());
  for (const Tensor& gradient : gradients) sums.push_back(_block_square_sums(gradient));
  add(std::move(sums), numbers);
}

PendingGradNorm PendingGradNorm::of_square_sums(std::vector<Tensor> sums, ReadBack& numbers) {
  const NoGradGuard no_grad;
  PendingGradNorm norm;
  norm.add(std::move(sums), numbers);
  return norm;
}

void PendingGradNorm::add(std::vector<Tensor> sums, ReadBack& numbers) {
  // From a device they come in one copy: each takes as long as a copy takes at least.
  if (sums.size() > 1 && is_asynchronous(sums[0].device().type)) sums = {cat(sums)};
  for (const Tensor& sum : sums) {
    const size_t number = numbers.add(sum);
    if (count_++ == 0) first_ = number;
  }
}

double PendingGradNorm::value(const ReadBack& numbers) const {
  double sum = 0;
  for (size_t i = 0; i < count_; ++i) {
    for (const double block : numbers.values(first_ + i)) sum += block;
  }
  return std::sqrt(sum);
}

double grad_norm(std::span<const Tensor> gradients) {
  ReadBack numbers;
  const PendingGradNorm norm(gradients, numbers);
  numbers.wait();
  return norm.value(numbers);
}

double clip_factor(double norm, double limit) {
  // The small term is PyTorch's; it keeps the factor finite.
  return limit > 0 && norm > limit ? limit / (norm + 1e-6) : 1.0;
}

}  // namespace lockstep::train
