// The part of ShardedModel that runs during a step: gathers parameters before they are used and
// sums gradients as they arrive.

#include <algorithm>
#include <chrono>
#include <utility>

#include "autograd/checkpoint.h"
#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "core/base/check.h"
#include "dist/fsdp/sharded_model.h"
#include "dist/fsdp/sharded_unit.h"

namespace lockstep::dist {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

// --- a step --------------------------------------------------------------------------------------

void ShardedModel::begin_step() {
  LS_CHECK(!is_in_backward(), AutogradError,
           "[fully_shard] begin_step: expected a call between backwards, got one inside of one.");
  LS_CHECK(!summoned_, DistError,
           "[fully_shard] begin_step: expected release_full_parameters() before it.");
  check_have_values();
  for (const auto& unit : units_) {
    unit->gradients.finish();
    unit->gradients.begin_step();
    unit->told = false;
  }
  in_flight_.clear();
  on_the_way_.clear();
  stack_.clear();
  next_leaf_ = options_.leaves.first;
  in_leaf_ = false;
  last_backward_ = false;
  last_row_ = last_joins_ = 0;
  gather_waits_.assign(units_.size(), {});
  reduced_units_.clear();
  times_.step_begun(units_.size());
}

void ShardedModel::forget_step() {
  in_flight_.clear();
  on_the_way_.clear();
  stack_.clear();
  for (const auto& unit : units_) {
    unit->gradients.forget();
    unit->values.abandon();
  }
  mark_changed();  // what was to be gathered is not there
}

void ShardedModel::deal_out(const LeafDeal& deal) {
  check_deal("fully_shard", deal, options_.tree_leaves, group_.size());
  LS_CHECK(options_.uneven_passes, DistError,
           "[fully_shard] deal_out: expected ShardOptions::uneven_passes, without which ranks with "
           "fewer leaves than others would be waited for.");
  options_.leaves = deal.of(group_.rank());
  for (const auto& unit : units_) unit->gradients.deal_out(deal, stack_depth(options_.leaves));
}

void ShardedModel::begin_leaf() {
  if (options_.tree_leaves == 0) return;
  const auto row = static_cast<int64_t>(stack_.sums().size());
  if (in_leaf_) {
    const int joins = stack_.push({next_leaf_ - 1, next_leaf_});
    for (const auto& unit : units_) {
      if (unit->gradients.trained() == 0) continue;
      check_complete(*unit);
      unit->gradients.join(row, joins);
    }
  }
  LS_CHECK(next_leaf_ < options_.leaves.end, DistError,
           "[fully_shard] expected {} leaves in a step, got one more.", options_.leaves.size());
  last_row_ = static_cast<int64_t>(stack_.sums().size());
  for (const auto& unit : units_) unit->gradients.begin_leaf(last_row_);
  in_leaf_ = true;
  ++next_leaf_;
  if (next_leaf_ < options_.leaves.end) return;
  LeafStack at_the_end = stack_;
  last_joins_ = at_the_end.push({next_leaf_ - 1, next_leaf_});
}

void ShardedModel::finish() {
  times_.backward_done();
  const bool all_leaves = options_.tree_leaves == 0 || next_leaf_ == options_.leaves.end;
  LS_CHECK(all_leaves, DistError, "[fully_shard] finish: expected all {} leaves of the step.",
           options_.leaves.size());
  for (uint32_t i = 0; i < units_.size(); ++i) {
    const UnitGradients& gradients = units_[i]->gradients;
    const bool has_none = gradients.trained() > 0 && !gradients.has_sums();
    if (gradients.has_gradients() || has_none) reduce_complete(i);
  }
  while (!in_flight_.empty()) drain();
  for (const auto& unit : units_) unit->gradients.begin_replica_sums(sum_groups());
  for (const auto& unit : units_) complete(*unit);
  wait_for_host_copies();
  tell_of_copied();
  times_.all_reduced({});
  mark_changed();
}

SumGroups ShardedModel::sum_groups() const { return {&group_, shards_, replicas_.get()}; }

void ShardedModel::check_complete(const Unit& unit) const {
  const std::vector<NamedTensor>& parameters = unit.values.parameters();
  const uint32_t missing = unit.gradients.first_missing();
  if (missing == parameters.size()) return;
  throw AutogradError(fmt::format(
      "[backward] parameter {} {} received no gradient: expected every parameter to take part in "
      "the loss. Remove it from the model, use it, or leave it out (ShardOptions::ignored).",
      parameters[missing].name, parameters[missing].tensor.shape()));
}

bool ShardedModel::reduces_now() const {
  if (no_sync_ > 0) return false;
  return last_backward_ || !accumulates();
}

// --- forward -------------------------------------------------------------------------------------

void ShardedModel::check_have_values() const {
  for (const auto& unit : units_) {
    const size_t first = unit->values.first_without_values();
    const std::vector<NamedTensor>& parameters = unit->values.parameters();
    if (first == parameters.size()) continue;
    throw DistError(fmt::format(
        "[fully_shard] parameter {} {} has no values yet: expected ShardOptions::fill, or runs() "
        "to be filled and mark_changed(), before the first forward.",
        parameters[first].name, parameters[first].tensor.shape()));
  }
}

void ShardedModel::begin_forward() {
  check_have_values();
  position_ = 0;
  gathered_.clear();
  // What an earlier forward without a backward has left may be out of date.
  for (const auto& unit : units_) unit->values.release();
}

void ShardedModel::end_forwards() {
  if (summoned_) return;
  for (const auto& unit : units_) unit->values.release();
  wait_for_host_copies();
}

void ShardedModel::gather_casts(bool on) {
  end_forwards();
  gathers_casts_ = on;
}

/// Returns whether the gather begins now.
bool ShardedModel::start_gather(uint32_t unit) {
  if (!units_[unit]->values.start_gather(*gathers_, {.as_they_are = !gathers_casts_})) return false;
  gathered_.push_back(unit);
  return true;
}

void ShardedModel::pass_without_samples() {
  LS_CHECK(
      options_.uneven_passes, DistError,
      "[fully_shard] pass_without_samples: expected ShardOptions::uneven_passes. Set it on all "
      "ranks.");
  // Every pass of a step gathers the same units in the same order.
  for (const uint32_t unit : gathered_) {
    UnitValues& values = units_[unit]->values;
    values.start_gather(*gathers_);
    values.finish_gather();
    values.release();
  }
}

/// Notes that the forward in progress has come to `unit`.
void ShardedModel::record(uint32_t unit) {
  if (position_ < order_.size() && order_[position_] != unit) order_.resize(position_);
  was_foreseen_ = position_ < order_.size();
  if (!was_foreseen_) order_.push_back(unit);
  ++position_;
}

void ShardedModel::before_forward(uint32_t unit) {
  if (summoned_) return;
  if (is_recomputing() || is_in_backward()) return use(unit, Direction::kNone);
  if (unit == kRoot) begin_forward();
  record(unit);
  use(unit, Direction::kForward);
}

void ShardedModel::after_forward(uint32_t unit, std::span<const Tensor> outputs) {
  if (is_recomputing()) return;
  const bool records = is_grad_enabled();
  if (records) {
    for (const Tensor& each : outputs) {
      if (!each.requires_grad() || each.is_leaf()) continue;
      register_prehook(*gradient_edge(each).node,
                       [this, unit](std::span<Tensor>) { before_backward(unit); });
    }
    // Gradients of what the model computes after the root's forward come before its backward.
    if (unit == kRoot) units_[unit]->gradients.prepare();
  }
  if (summoned_ || unit == kRoot || is_in_backward()) return;
  const bool gathers_again = options_.strategy == ShardStrategy::kFullShard ||
                             options_.strategy == ShardStrategy::kHybridShard;
  if (!records || (gathers_again && !is_last_of_forward(unit))) units_[unit]->values.release();
}

/// Whether backward comes to `unit` before all others, so that releasing it would only gather it
/// again. The order is that of the forward before. Passes of ranks that have no samples gather what
/// their last forward did, so all forwards must gather alike.
bool ShardedModel::is_last_of_forward(uint32_t unit) const {
  return was_foreseen_ && position_ == order_.size() && order_.back() == unit &&
         !options_.uneven_passes;
}

void ShardedModel::use(uint32_t unit, Direction ahead) {
  const Clock::time_point start = Clock::now();
  UnitValues& values = units_[unit]->values;
  const bool late = start_gather(unit);
  if (ahead != Direction::kNone) gather_ahead(unit, ahead);
  values.finish_gather();
  if (unit >= gather_waits_.size()) return;  // before the first step
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  gather_waits_[unit].seconds += seconds;
  if (late) gather_waits_[unit].late_seconds += seconds;
}

/// Begins to gather the units that come after `unit` in the last forward, or before it.
void ShardedModel::gather_ahead(uint32_t unit, Direction direction) {
  const int64_t limit = keeps_whole() ? INT64_MAX : options_.prefetch_bytes;
  const bool forward = direction == Direction::kForward;
  // In backward the last use of a unit comes first.
  auto at = forward ? static_cast<int64_t>(position_) - 1
                    : order_.rend() - std::ranges::find(order_.rbegin(), order_.rend(), unit) - 1;
  int64_t ahead = 0;
  for (bool first = true;; first = false) {
    at += forward ? 1 : -1;
    if (at < 0 || at >= static_cast<int64_t>(order_.size())) return;
    const uint32_t next = order_[static_cast<size_t>(at)];
    if (next == unit || next == kRoot) continue;
    ahead += units_[next]->values.bytes();
    if (!first && ahead > limit) return;
    start_gather(next);
  }
}

// --- backward ------------------------------------------------------------------------------------

/// Queues `after_backward` at the first sign of a backward.
void ShardedModel::begin_backward() {
  if (is_in_backward()) return;
  reductions_ = 0;
  accumulated_ = false;
  for (const auto& unit : units_) unit->in_backward = false;
  const auto running = std::make_shared<const bool>(true);
  queue_final_callback([this, running] { after_backward(); });
  running_ = running;
}

void ShardedModel::come_to(Unit& unit) {
  if (!std::exchange(unit.in_backward, true)) unit.gradients.begin_backward();
}

void ShardedModel::before_backward(uint32_t index) {
  begin_backward();
  if (!summoned_) use(index, Direction::kBackward);
  come_to(*units_[index]);
}

/// Called before a gradient is added.
void ShardedModel::gradient_comes(uint32_t index) {
  begin_backward();
  accumulated_ = true;
  come_to(*units_[index]);
}

void ShardedModel::gradient_arrived(uint32_t index, uint32_t parameter) {
  Unit& unit = *units_[index];
  if (is_grad_enabled()) {
    const NamedTensor& each = unit.values.parameters()[parameter];
    // The gradient's graph refers to the parameter: the cycle would never be freed.
    each.tensor.set_grad({});
    throw AutogradError(
        fmt::format("[backward] create_graph: gradients of parameter {} are summed over ranks, "
                    "which has no derivative. Use grad() for a gradient of gradients.",
                    each.name));
  }
  if (!unit.gradients.arrived(parameter)) return;
  if (reduces_now()) reduce(index);
  // Every use of a trained parameter has been passed. A frozen one may still be needed.
  const bool all_trained = unit.gradients.trained() == unit.values.parameters().size();
  if (all_trained && !summoned_) unit.values.release();
}

/// Waits for the oldest reduction. After the last of a step the sums go on to the other replicas.
void ShardedModel::drain() {
  const InFlight oldest = in_flight_.front();
  in_flight_.erase(in_flight_.begin());
  oldest.work.wait();
  Unit& unit = *units_[oldest.unit];
  if (!oldest.is_last) return unit.gradients.finish_shard_sums();
  if (replicas_) {
    unit.gradients.begin_replica_sums(sum_groups());
  } else {
    complete(unit);
  }
}

/// Waits for a unit's sums, and tells of them.
void ShardedModel::complete(Unit& unit) {
  unit.gradients.finish();
  if (!on_reduced_ || std::exchange(unit.told, true) || unit.parts.empty()) return;
  if (!host_copies_) return on_reduced_(unit.parts, gradients_);
  on_the_way_.push_back({&unit, Event()});
  on_the_way_.back().copied.record(host_copies_->get());
  tell_of_copied();
}

/// Tells of sums that have come to the host. Backward does not wait for the others.
void ShardedModel::tell_of_copied() {
  while (!on_the_way_.empty() && on_the_way_.front().copied.query()) {
    const Unit& unit = *on_the_way_.front().unit;
    on_the_way_.erase(on_the_way_.begin());
    on_reduced_(unit.parts, gradients_);
  }
}

void ShardedModel::reduce(uint32_t index) {
  UnitGradients& gradients = units_[index]->gradients;
  // Another rank may have a pass left, which needs this rank before its reductions.
  while (!options_.uneven_passes && in_flight_.size() >= kReductionsUnderWay) {
    drain();
  }
  // With several backwards in a step the times are those of the last.
  const size_t number = std::min(reductions_++, units_.size() - 1);
  reduced_units_.resize(number);
  reduced_units_.push_back(index);
  times_.bucket_ready(number, gradients.bytes());
  times_.bucket_launched(number);
  Work work = gradients.reduce(sum_groups(), last_row_, last_joins_);
  in_flight_.push_back({index, work, last_backward_});
  times_.bucket_under_way(number, std::move(work));
}

void ShardedModel::communicate(int64_t passes) {
  begin_step();
  auto told = std::exchange(on_reduced_, {});
  const bool twice = options_.strategy == ShardStrategy::kFullShard ||
                     options_.strategy == ShardStrategy::kHybridShard;
  if (options_.tree_leaves > 0) last_row_ = std::ssize(subtrees(options_.leaves)) - 1;
  const int64_t gathers = gathers_each_pass() ? passes : 1, sums = accumulates() ? 1 : passes;
  for (int64_t pass = 0; pass < std::max(gathers, sums); ++pass) {
    for (int64_t i = 0; pass < gathers && i < (twice ? 2 : 1); ++i) {
      for (const auto& unit : units_) {
        const bool stays = i == 1 && unit == units_[kRoot];
        if (stays) continue;
        unit->values.mark_changed();
        unit->values.start_gather(*gathers_);
        unit->values.finish_gather();
        if (i == 1 || !twice || unit != units_[kRoot]) unit->values.release();
      }
    }
    units_[kRoot]->values.release();
    if (pass >= sums) continue;
    reductions_ = 0;
    last_backward_ = pass + 1 == sums;
    for (uint32_t i = 0; i < units_.size(); ++i) {
      if (units_[i]->gradients.trained() == 0) continue;
      units_[i]->gradients.prepare_zeros();
      reduce(i);
    }
  }
  in_flight_.clear();
  for (const auto& unit : units_) unit->gradients.begin_replica_sums(sum_groups());
  begin_step();
  on_reduced_ = std::move(told);
}

void ShardedModel::reduce_complete(uint32_t index) {
  check_complete(*units_[index]);
  reduce(index);
}

void ShardedModel::after_backward() {
  for (const auto& unit : units_) {
    if (!summoned_) unit->values.release();
  }
  if (!accumulated_ || !reduces_now()) return;
  for (uint32_t i = 0; i < units_.size(); ++i) {
    Unit& unit = *units_[i];
    if (unit.gradients.trained() == 0) continue;
    come_to(unit);
    if (unit.gradients.has_gradients()) reduce_complete(i);
  }
}

}  // namespace lockstep::dist
