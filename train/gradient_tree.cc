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
  partials_.push_back({std::move(current_), 0});
  while (partials_.size() > 1 && partials_.back().level == partials_[partials_.size() - 2].level) {
    join_last_two();
  }
}

void GradientTree::join_last_two() {
  Partial right = std::move(partials_.back());
  partials_.pop_back();
  const NoGradGuard no_grad;
  partials_.back().arena->flat().add_(right.arena->flat());
  ++partials_.back().level;
  spare_.push_back(std::move(right.arena));
}

const GradientArena& GradientTree::result() {
  LS_ASSERT(!partials_.empty());
  while (partials_.size() > 1) join_last_two();
  result_ = std::move(partials_.back().arena);
  partials_.pop_back();
  return *result_;
}

}  // namespace lockstep::train
