#include "train/early_update.h"

#include <utility>

#include "autograd/grad_mode.h"
#include "core/ops/optimizer.h"

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
  square_sums_.resize(gradients.size());
  for (const uint32_t each : waiting_) square_sums_[each] = _block_square_sums(gradients[each]);
  optimizer_.step_part(waiting_, gradients, learning_rate_, 1.0 / *targets_.data<double>());
  waiting_.clear();
}

}  // namespace lockstep::train
