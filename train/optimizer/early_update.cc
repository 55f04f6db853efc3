#include "train/optimizer/early_update.h"

#include <utility>

#include "autograd/grad_mode.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep::train {

void EarlyUpdate::begin(Tensor targets, dist::Work sum, double learning_rate) {
  targets_ = std::move(targets);
  targets_sum_ = std::move(sum);
  learning_rate_ = learning_rate;
  optimizer_.begin_parts();
}

void EarlyUpdate::update(std::span<const uint32_t> parameters,
                         const std::vector<Tensor>& gradients) {
  waiting_.insert(waiting_.end(), parameters.begin(), parameters.end());
  if (targets_sum_.is_completed()) finish(gradients);
}

void EarlyUpdate::finish(const std::vector<Tensor>& gradients) {
  if (waiting_.empty()) return;
  const NoGradGuard no_grad;
  targets_sum_.wait();
  add_square_sums(gradients);
  optimizer_.step_part(waiting_, gradients, learning_rate_, 1.0 / *targets_.data<double>());
  waiting_.clear();
}

void EarlyUpdate::add_square_sums(const std::vector<Tensor>& gradients) {
  std::vector<Tensor> complete;
  std::vector<int64_t> blocks;
  for (const uint32_t each : waiting_) {
    complete.push_back(gradients[each]);
    blocks.push_back((gradients[each].numel() + kNormBlock - 1) / kNormBlock);
  }
  const std::vector<Tensor> sums = split_with_sizes(_block_square_sums(complete), blocks);
  square_sums_.resize(gradients.size());
  for (size_t i = 0; i < waiting_.size(); ++i) square_sums_[waiting_[i]] = sums[i];
}

Tensor EarlyUpdate::square_sums() const { return cat(square_sums_); }

}  // namespace lockstep::train
