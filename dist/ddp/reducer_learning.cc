// The part of Reducer that learns from the first steps, and that ranks run together after a step.

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "dist/ddp/reducer.h"

namespace lockstep::dist {

void Reducer::check_static_graph() const {
  if (!options_.static_graph) return;
  constexpr const char* kAdvice = "Run the same graph in every step, or leave static_graph out.";
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const NamedTensor& each = parameters_[i];
    LS_CHECK(used_anywhere_.empty() || !used_[i] || used_anywhere_[i], AutogradError,
             "[backward] static_graph: parameter {} {}: expected no gradient, as on all ranks in "
             "the first step, got one. {}",
             each.name, each.tensor.shape(), kAdvice);
    LS_CHECK(!last_backward_ || expected_.empty() || arrivals_[i] == expected_[i], AutogradError,
             "[backward] static_graph: parameter {} {}: expected {} gradients in the last "
             "backward, as in the first step, got {}. {}",
             each.name, each.tensor.shape(), expected_[i], arrivals_[i], kAdvice);
  }
}

/// Records after the first step how many gradients of each parameter its bucket waits for.
void Reducer::learn_counts() {
  if (hooks_.empty() || !last_backward_ || !expected_.empty()) return;
  expected_ = arrivals_;
  if (options_.static_graph) return;
  for (uint32_t& count : expected_) count = std::max(count, 1U);
}

/// Sets `used_` for parameters that are used on any rank.
void Reducer::agree_on_use() {
  if (!used_anywhere_.empty()) {
    used_ = used_anywhere_;
    return;
  }
  if (group_ != nullptr && options_.find_unused_parameters) {
    const Tensor counts = empty({static_cast<int64_t>(used_.size())}, {DType::kI32, kCPU});
    std::copy(used_.begin(), used_.end(), counts.data<int32_t>());
    group_->all_reduce(counts).wait();
    for (size_t i = 0; i < used_.size(); ++i) used_[i] = counts.data<int32_t>()[i] > 0;
  }
  if (options_.static_graph && last_backward_) used_anywhere_ = used_;
}

/// Sets every `grad` to the sum, or to undefined if no rank has a gradient.
void Reducer::set_gradients() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.set_grad(used_[i] ? slots_[0][i] : Tensor());
  }
}

/// Makes the order in which gradients arrived on rank `root` the order of all ranks.
void Reducer::learn_order(int root) {
  if (hooks_.empty() || !last_backward_ || !order_.empty()) return;
  std::vector<uint32_t> order;
  std::vector<bool> seen(parameters_.size());
  const auto take = [&](uint32_t parameter) {
    if (!seen[parameter]) order.push_back(parameter);
    seen[parameter] = true;
  };
  // Backwards, as the last arrival of each counts. Parameters without a gradient come last.
  for (const uint32_t each : reverse_order(parameters_.size())) {
    if (arrivals_[each] == 0) take(each);
  }
  for (auto each = arrived_.rbegin(); each != arrived_.rend(); ++each) take(*each);
  std::ranges::reverse(order);
  const Tensor agreed = empty({static_cast<int64_t>(order.size())}, {DType::kI32, kCPU});
  std::ranges::copy(order, agreed.data<int32_t>());
  if (group_ != nullptr) group_->broadcast(agreed, root).wait();
  std::copy_n(agreed.data<int32_t>(), order.size(), order.begin());
  order_ = std::move(order);
}

/// Records a step in which nothing was sent before `finish`, and chooses bucket sizes after the
/// last such step.
void Reducer::measure() {
  if (!is_measuring() || !last_backward_ || order_.empty()) return;
  tuner_->begin_step(parameters_.size());
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    if (const auto at = times_.gradient_time(i)) tuner_->arrived(i, *at);
  }
  tuner_->end_step(times_.backward_ended());
  if (is_measuring()) return;
  choice_ = tuner_->choose(
      *group_, planned_, order_, options_.buckets, rows_sent(),
      [this](const Tensor& sums) { return add_over_ranks(sums.select(0, 0), sums); });
  next_plan_ = plan_buckets(planned_, order_, choice_->limits);
}

bool Reducer::is_settled() const {
  return group_ == nullptr || (in_learnt_order_ && !next_plan_ && !is_measuring());
}

}  // namespace lockstep::dist
