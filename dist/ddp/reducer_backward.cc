// The part of Reducer that runs during backward: sends buckets as their gradients arrive.

#include <algorithm>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/spans/span.h"
#include "core/ops/pointwise/pointwise.h"
#include "dist/collectives/operation_label.h"
#include "dist/ddp/hook_runner.h"
#include "dist/ddp/reducer.h"

namespace lockstep::dist {

/// Called before a gradient is added; throws if its bucket may have been sent already.
void Reducer::check_not_sent(uint32_t parameter) {
  const MutexLock lock(mutex_);
  if (!last_backward_ || expected_.empty() || arrivals_[parameter] < expected_[parameter]) return;
  throw AutogradError(fmt::format(
      "[backward] parameter {} receives another gradient after the {} that came in the first step, "
      "and may have been sent already. Run the same backwards in every step{}.",
      parameters_[parameter].name, expected_[parameter],
      options_.static_graph ? ", or leave static_graph out" : ""));
}

void Reducer::gradient_arrived(uint32_t parameter) {
  const MutexLock lock(mutex_);
  if (!last_backward_) return;
  if (is_grad_enabled()) {
    // The gradient's graph refers to the parameter: the cycle would never be freed.
    parameters_[parameter].tensor.set_grad({});
    throw AutogradError(fmt::format(
        "[backward] create_graph: gradients of parameter {} are summed over ranks, which has no "
        "derivative. Use grad() for a gradient of gradients.",
        parameters_[parameter].name));
  }
  arrived_.push_back(parameter);
  const uint32_t count = ++arrivals_[parameter];
  if (expected_.empty() || count < expected_[parameter]) return;
  const uint32_t bucket = plan_.bucket_of[parameter];
  Filling& filling = filling_[bucket];
  const Stream stream = current_stream(parameters_[parameter].tensor.device());
  if (std::ranges::find(filling.streams, stream) == filling.streams.end()) {
    filling.streams.push_back(stream);
  }
  --filling.missing;
  if (is_measuring()) {
    times_.gradient_ready(parameter);
  } else {
    launch_complete();
  }
}

/// Launches complete buckets in the order of the plan, which is the same on all ranks.
void Reducer::launch_complete() {
  while (launched_ < filling_.size() && filling_[launched_].missing == 0) {
    zero_absent(launched_);
    launch(launched_);
  }
  hand_over_complete();
}

/// Passes reduced buckets to on_reduced while later ones are still in flight.
void Reducer::hand_over_complete() {
  if (!options_.on_reduced) return;
  while (handed_over_ < launched_ && times_.reduction(handed_over_).is_completed()) hand_over();
}

void Reducer::hand_over() {
  const size_t bucket = handed_over_++;
  times_.reduction(bucket).wait();
  options_.on_reduced(plan_.buckets[bucket].parameters, gradients());
}

/// With static_graph, zeroes the slots of a bucket's parameters that get no gradient: the bucket
/// does not wait for them.
void Reducer::zero_absent(size_t bucket) {
  if (!options_.static_graph) return;
  const NoGradGuard no_grad;
  for (const uint32_t each : plan_.buckets[bucket].parameters) {
    if (parameters_[each].tensor.grad().defined()) continue;
    slots_[static_cast<size_t>(last_row_)][each].zero_();
  }
}

void Reducer::launch(size_t index) {
  const NoGradGuard no_grad;
  const Bucket& bucket = plan_.buckets[index];
  const Span span(SpanKind::kRange, "bucket", index + 1,
                  static_cast<int64_t>(bucket_bytes(bucket, planned_)));
  const OperationLabel label = OperationLabel::bucket(index + 1);
  const GradientArena& arena = arenas_[static_cast<size_t>(bucket.arena)];
  const Device device = parameters_[bucket.parameters.front()].tensor.device();
  for (const Stream& stream : filling_[index].streams) {
    if (stream != current_stream(device)) current_stream(device).wait_stream(stream);
  }
  times_.bucket_ready(index, bucket_bytes(bucket, planned_));
  const auto row = [&](int64_t number) { return arena.range(number, bucket.first, bucket.end); };
  for (int64_t join = 0; join < last_joins_; ++join) {
    row(last_row_ - join - 1).add_(row(last_row_ - join));
  }
  ++launched_;
  times_.bucket_launched(index);
  times_.bucket_under_way(index, group_ != nullptr && communicates_ ? reduce(index) : Work());
}

/// Returns the number of rows that are sent: one unless the sum is over a tree of leaves.
int64_t Reducer::rows_sent() const {
  return options_.tree_leaves > 0 ? last_row_ + 1 - last_joins_ : 1;
}

Work Reducer::reduce(size_t index) {
  if (runner_) return runner_->run(gradients_of(index));
  const Bucket& bucket = plan_.buckets[index];
  const GradientArena& arena = arenas_[static_cast<size_t>(bucket.arena)];
  return add_over_ranks(arena.range(0, bucket.first, bucket.end),
                        arena.ranges(rows_sent(), bucket.first, bucket.end));
}

Work Reducer::add_over_ranks(const Tensor& output, const Tensor& sums) {
  if (!deal_.is_empty()) return group_->tree_all_reduce(output, sums, deal_);
  return group_->all_reduce(output, sum_of_ranks(group_->size(), options_.average));
}

/// Returns this rank's sums of a bucket, for the hook.
GradientBucket Reducer::gradients_of(size_t index) const {
  const Bucket& bucket = plan_.buckets[index];
  const GradientArena& arena = arenas_[static_cast<size_t>(bucket.arena)];
  GradientBucket result{.index = index,
                        .is_last = index + 1 == plan_.buckets.size(),
                        .values = arena.range(0, bucket.first, bucket.end),
                        .gradients = {}};
  for (const uint32_t each : bucket.parameters) {
    result.gradients.push_back({each, parameters_[each].name, slots_[0][each]});
  }
  return result;
}

}  // namespace lockstep::dist
