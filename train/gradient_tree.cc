#include "train/gradient_tree.h"

#include "autograd/grad_mode.h"
#include "core/check.h"
#include "core/ops/pointwise.h"

namespace lockstep::train {

GradientTree::GradientTree(const std::vector<nn::NamedParameter>& parameters)
    : parameters_(parameters) {}

void GradientTree::begin_leaf() {
  if (result_) spare_.push_back(std::move(result_));
  if (spare_.empty()) spare_.push_back(std::make_unique<GradientArena>(parameters_));
  current_ = std::move(spare_.back());
  spare_.pop_back();
  current_->attach();
}

void GradientTree::end_leaf() {
  current_->check_complete();
  Partial right{std::move(current_), 0};
  const NoGradGuard no_grad;
  while (!partials_.empty() && partials_.back().level == right.level) {
    Partial left = std::move(partials_.back());
    partials_.pop_back();
    left.arena->flat().add_(right.arena->flat());
    spare_.push_back(std::move(right.arena));
    right = {std::move(left.arena), left.level + 1};
  }
  partials_.push_back(std::move(right));
}

const GradientArena& GradientTree::result() {
  LS_ASSERT(partials_.size() == 1);
  result_ = std::move(partials_.back().arena);
  partials_.pop_back();
  return *result_;
}

}  // namespace lockstep::train
