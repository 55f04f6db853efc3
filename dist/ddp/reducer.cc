#include "dist/ddp/reducer.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "autograd/accumulate_grad.h"
#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "dist/ddp/hook_runner.h"
#include "dist/group/agreement.h"

namespace lockstep::dist {

namespace {

using Clock = std::chrono::steady_clock;

/// Describes the parameters for plan_buckets; arenas are numbered in order of first occurrence.
std::vector<PlannedParameter> planned(const std::vector<NamedTensor>& parameters) {
  std::map<std::pair<DType, std::string>, int> arenas;
  std::vector<PlannedParameter> result;
  for (const NamedTensor& each : parameters) {
    const std::pair kind{each.tensor.dtype(), to_string(each.tensor.device())};
    const auto arena = arenas.emplace(kind, static_cast<int>(arenas.size())).first->second;
    result.push_back(
        {each.tensor.numel(), static_cast<int64_t>(size_of(each.tensor.dtype())), arena});
  }
  return result;
}

/// Returns the device of all parameters, or the cpu if they are on several.
Device common_device(const std::vector<NamedTensor>& parameters) {
  if (parameters.empty()) return kCPU;
  const Device first = parameters.front().tensor.device();
  const bool is_common = std::ranges::all_of(
      parameters, [&](const NamedTensor& each) { return each.tensor.device() == first; });
  return is_common ? first : kCPU;
}

/// Whether bucket sizes can be chosen from measurements, which differ from run to run.
bool may_choose_sizes(const std::vector<NamedTensor>& parameters, const ProcessGroup* group,
                      const ReducerOptions& options) {
  const bool asks = options.buckets.first_bytes == 0 || options.buckets.bytes == 0;
  if (group == nullptr || parameters.empty() || options.communication_hook || !asks) return false;
  // Times of gradients on several devices cannot be compared.
  const Device device = parameters.front().tensor.device();
  const bool on_one_device = std::ranges::all_of(
      parameters, [&](const NamedTensor& each) { return each.tensor.device() == device; });
  // No bit may depend on the choice.
  const bool in_any_size = options.tree_leaves > 0 || group->adds_in_one_order();
  return on_one_device && device.type != DeviceType::kMeta && in_any_size;
}

void check_options(const ReducerOptions& options) {
  LS_CHECK(options.leaves.size() > 0, DistError,
           "[reducer] leaves: expected at least one for this rank, got none.");
  LS_CHECK(options.tree_leaves == 0 || !options.average, DistError,
           "[reducer] average: a sum over leaves is divided by what the leaves are of, not by the "
           "number of ranks. Divide it by the number of samples.");
  LS_CHECK(!options.on_reduced || !options.find_unused_parameters, DistError,
           "[reducer] on_reduced: which parameters are not used is known only when backward has "
           "ended. Leave find_unused_parameters out.");
  LS_CHECK(!options.average_over_present || (options.tree_leaves == 0 && !options.average),
           DistError,
           "[reducer] average_over_present: expected neither average nor a tree of leaves with it. "
           "A step of tree_leaves has all its leaves, whatever the number of ranks.");
  LS_CHECK(!options.on_reduced || !options.average_over_present, DistError,
           "[reducer] on_reduced: what sums are divided by is known only when backward has ended. "
           "Leave average_over_present out.");
  LS_CHECK(options.tree_leaves == 0 || !options.communication_hook, DistError,
           "[reducer] communication_hook: a sum over leaves has the same bits on any number of "
           "ranks, which what {} makes of each rank's sum has not. Leave one of them out.",
           options.communication_hook.name);
}

}  // namespace

std::string description(const std::vector<NamedTensor>& tensors) {
  std::string text;
  for (const NamedTensor& each : tensors) {
    text +=
        fmt::format("{} {} {}\n", each.name, to_string(each.tensor.dtype()), each.tensor.shape());
  }
  return text;
}

Reducer::Reducer(std::vector<NamedTensor> parameters, ProcessGroup* group,
                 const ReducerOptions& options)
    : parameters_(std::move(parameters)),
      group_(group != nullptr && group->size() > 1 ? group : nullptr),
      options_(options),
      planned_(planned(parameters_)),
      device_(group_ == nullptr ? kCPU : common_device(parameters_)),
      times_(device_) {
  check_options(options_);
  if (group_ != nullptr && options_.tree_leaves > 0) {
    LS_CHECK(options_.tree_leaves >= group_->size(), DistError,
             "[reducer] tree_leaves: expected at least one for each of the {} ranks, got {}.",
             group_->size(), options_.tree_leaves);
    deal_ = LeafDeal::even(options_.tree_leaves, group_->size());
  }
  check_parameters();
  lay_out(plan_buckets(planned_, reverse_order(parameters_.size()),
                       or_usual(options_.buckets, device_.type)));
  if (group_ != nullptr && options_.communication_hook) {
    runner_ = std::make_unique<HookRunner>(options_.communication_hook, *group_,
                                           options_.average ? 1.0 / group_->size() : 1.0);
  }
  if (group_ == nullptr && !options_.on_reduced) return;
  if (may_choose_sizes(parameters_, group_, options_)) tuner_.emplace(device_);
  watch_parameters();
}

/// Has backward tell of each gradient.
void Reducer::watch_parameters() {
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    // Hooks of the accumulation node: hooks of the tensor would also run for grad().
    hooks_.push_back(register_prehook(*gradient_edge(parameters_[i].tensor).node,
                                      [this, i](std::span<Tensor>) { check_not_sent(i); }));
    hooks_.push_back(register_post_accumulate_grad_hook(
        parameters_[i].tensor, [this, i](const Tensor&) { gradient_arrived(i); }));
  }
}

Reducer::~Reducer() {
  for (HookHandle& hook : hooks_) hook.remove();
  for (const NamedTensor& each : parameters_) {
    // A parameter that has been frozen meanwhile has no destination.
    if (each.tensor.requires_grad()) set_grad_destination(each.tensor, {});
  }
}

void Reducer::check_parameters() const {
  std::map<const void*, std::string> names;
  for (const NamedTensor& each : parameters_) {
    LS_CHECK(
        each.tensor.requires_grad() && each.tensor.is_leaf(), AutogradError,
        "[reducer] parameter {}: expected a leaf that requires grad. Call set_requires_grad(), "
        "or leave it out.",
        each.name);
    const auto [first, is_new] = names.emplace(each.tensor.impl(), each.name);
    LS_CHECK(is_new, AutogradError,
             "[reducer] parameters {} and {} are one tensor, which has one gradient. Pass it once.",
             first->second, each.name);
  }
  if (group_ == nullptr) return;
  std::string text = description(parameters_);
  if (const CommunicationHook& hook = options_.communication_hook) {
    text += "communication hook " + hook.name;
  }
  require_same(*group_, "reducer", "model", text, at_start(*group_));
}

void Reducer::lay_out(BucketPlan plan) {
  const NoGradGuard no_grad;
  plan_ = std::move(plan);
  const int64_t rows = stack_depth(options_.leaves);
  // Free the old arenas first: there may not be room for both.
  slots_.assign(static_cast<size_t>(rows), {});
  arenas_.clear();
  for (const NamedTensor& each : parameters_) {
    each.tensor.set_grad({});
    set_grad_destination(each.tensor, {});
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i].tensor;
    if (static_cast<size_t>(planned_[i].arena) < arenas_.size()) continue;
    // Sums by the tree have other sizes on ranks with other leaves.
    ProcessGroup* const registers = options_.tree_leaves == 0 ? group_ : nullptr;
    arenas_.emplace_back(rows, plan_.arena_elements[arenas_.size()], parameter.dtype(),
                         parameter.device(), registers);
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const GradientArena& arena = arenas_[static_cast<size_t>(planned_[i].arena)];
      slots_[static_cast<size_t>(row)].push_back(
          arena.slot(row, plan_.offsets[i], parameters_[i].tensor));
    }
  }
  filling_.resize(plan_.buckets.size());
}

/// Lays buckets out in the learnt order of gradients, or in the reverse order of parameters.
void Reducer::follow_order(bool learnt) {
  const std::vector<uint32_t> order = learnt ? order_ : reverse_order(parameters_.size());
  BucketPlan plan = plan_buckets(planned_, order, or_usual(options_.buckets, device_.type));
  if (plan != plan_) lay_out(std::move(plan));
  in_learnt_order_ = learnt;
}

/// Makes place for as many sums as the leaves of the new deal need.
void Reducer::follow_deal(LeafDeal deal) {
  const int depth = stack_depth(options_.leaves);
  deal_ = std::move(deal);
  options_.leaves = deal_.of(group_->rank());
  if (stack_depth(options_.leaves) != depth) lay_out(plan_);
}

int64_t Reducer::bytes() const {
  int64_t sum = 0;
  for (const GradientArena& each : arenas_) sum += each.bytes();
  return sum;
}

std::vector<BucketContent> Reducer::contents() const {
  std::vector<BucketContent> result;
  for (const Bucket& bucket : plan_.buckets) {
    BucketContent& content = result.emplace_back();
    content.first = parameters_[bucket.parameters.front()].name;
    content.last = parameters_[bucket.parameters.back()].name;
    content.parameters = std::ssize(bucket.parameters);
    for (const uint32_t p : bucket.parameters) {
      content.gradient_bytes += planned_[p].elements * planned_[p].element_bytes;
    }
  }
  return result;
}

// --- a step --------------------------------------------------------------------------------------

void Reducer::begin_step() {
  const MutexLock lock(mutex_);
  LS_CHECK(launched_ == 0, DistError,
           "[reducer] the step before was not finished: some of its gradients have gone to other "
           "ranks, which wait for the rest. Call finish() after the last backward.");
  if (new_deal_) follow_deal(*std::exchange(new_deal_, std::nullopt));
  if (!order_.empty() && !in_learnt_order_) follow_order(true);
  if (next_plan_) {
    BucketPlan plan = std::move(*std::exchange(next_plan_, std::nullopt));
    if (plan != plan_) lay_out(std::move(plan));
  }
  reset_step();
}

void Reducer::deal_out(const LeafDeal& deal) {
  const int ranks = group_ == nullptr ? 1 : group_->size();
  check_deal("reducer", deal, options_.tree_leaves, ranks);
  if (group_ != nullptr) new_deal_ = deal;
}

void Reducer::go_on() {
  LS_CHECK(options_.leaves.size() == 1, DistError,
           "[reducer] go_on: expected a step of one leaf, got {}.", options_.leaves.size());
  {
    const MutexLock lock(mutex_);
    reset_step();
  }
  in_leaf_ = true;
}

void Reducer::reset_step() {
  times_.step_begun(plan_.buckets.size());
  stack_.clear();
  next_leaf_ = options_.leaves.first;
  in_leaf_ = false;
  last_backward_ = false;
  launched_ = 0;
  handed_over_ = 0;
  arrived_.clear();
  arrivals_.assign(parameters_.size(), 0);
  used_.assign(parameters_.size(), false);
  for (size_t i = 0; i < filling_.size(); ++i) {
    const auto missing = std::ranges::count_if(
        plan_.buckets[i].parameters, [&](uint32_t parameter) LS_REQUIRES(mutex_) {
          return expected_.empty() || expected_[parameter] > 0;
        });
    filling_[i].missing = static_cast<size_t>(missing);
    filling_[i].streams.clear();
  }
}

void Reducer::forget_step() {
  const MutexLock lock(mutex_);
  reset_step();
}

void Reducer::begin_leaf() {
  if (in_leaf_) {
    const MutexLock lock(mutex_);
    end_leaf();
  }
  LS_CHECK(next_leaf_ < options_.leaves.end, DistError,
           "[reducer] expected {} leaves in a step, got one more.", options_.leaves.size());
  const std::vector<Tensor>& slots = slots_[stack_.sums().size()];
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.set_grad({});
    set_grad_destination(parameters_[i].tensor, slots[i]);
  }
  in_leaf_ = true;
  if (next_leaf_ + 1 < options_.leaves.end) return;
  last_row_ = static_cast<int64_t>(stack_.sums().size());
  LeafStack at_the_end = stack_;
  last_joins_ = at_the_end.push({next_leaf_, next_leaf_ + 1});
  // With a tree over several ranks, the all_reduce joins the remaining rows.
  if (options_.tree_leaves == 0 || group_ == nullptr) last_joins_ += at_the_end.finish();
}

/// Adds the leaf to the tree. The rows of the last one are joined bucket by bucket, in `launch`.
void Reducer::end_leaf() {
  const NoGradGuard no_grad;
  const auto row = static_cast<int64_t>(stack_.sums().size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const NamedTensor& each = parameters_[i];
    if (each.tensor.grad().defined()) {
      used_[i] = true;
      continue;
    }
    LS_CHECK(options_.find_unused_parameters, AutogradError,
             "[backward] parameter {} {} received no gradient: expected every parameter to take "
             "part in the loss. Use it, remove it from the model, or set find_unused_parameters if "
             "only some steps use it.",
             each.name, each.tensor.shape());
    // Slots of launched buckets were zeroed by zero_absent and may hold the ranks' sum by now.
    if (plan_.bucket_of[i] >= launched_) slots_[static_cast<size_t>(row)][i].zero_();
  }
  in_leaf_ = false;
  if (++next_leaf_ == options_.leaves.end) return;
  const int joins = stack_.push({next_leaf_ - 1, next_leaf_});
  for (int64_t join = 0; join < joins; ++join) {
    for (const GradientArena& arena : arenas_) {
      arena.range(row - join - 1, 0, arena.elements())
          .add_(arena.range(row - join, 0, arena.elements()));
    }
  }
}

void Reducer::expect_last_backward(bool expected) {
  LS_CHECK(in_leaf_ && next_leaf_ + 1 == options_.leaves.end, DistError,
           "[reducer] expect_last_backward: expected a call in the last leaf of the step.");
  const MutexLock lock(mutex_);
  last_backward_ = expected;
}

void Reducer::finish(const Present& present) {
  LS_CHECK(in_leaf_ && next_leaf_ + 1 == options_.leaves.end, DistError,
           "[reducer] finish: expected all {} leaves of the step, got {}.", options_.leaves.size(),
           next_leaf_ + (in_leaf_ ? 1 : 0) - options_.leaves.first);
  const MutexLock lock(mutex_);
  times_.backward_done();
  end_leaf();
  check_static_graph();
  learn_counts();
  complete(present);
  set_gradients();
}

void Reducer::answer(const Present& present) {
  LS_CHECK(options_.tree_leaves == 0 && options_.leaves.size() == 1, DistError,
           "[reducer] answer: expected a step of one leaf, got {}{}. Its leaves are shared out "
           "before it begins, so that no rank can be without: give all ranks as many samples.",
           options_.leaves.size(), options_.tree_leaves > 0 ? " and a tree over the ranks'" : "");
  const MutexLock lock(mutex_);
  LS_CHECK(launched_ == 0, DistError, "[reducer] answer: expected no step to be under way.");
  const NoGradGuard no_grad;
  if (in_learnt_order_ != present.learnt_order) follow_order(present.learnt_order);
  reset_step();
  for (const NamedTensor& each : parameters_) each.tensor.set_grad({});
  for (const GradientArena& arena : arenas_) arena.range(0, 0, arena.elements()).zero_();
  used_.assign(parameters_.size(), !options_.find_unused_parameters);
  last_backward_ = true;
  times_.backward_done();
  complete(present);
}

/// Sends the remaining buckets, waits for all, and runs the collective steps after a backward.
void Reducer::complete(const Present& present) {
  const NoGradGuard no_grad;
  while (launched_ < plan_.buckets.size()) launch(launched_);
  Clock::duration elsewhere{};
  for (size_t i = 0; i < times_.bucket_count(); ++i) {
    times_.reduction(i).wait();
    const Clock::time_point there = Clock::now();
    if (options_.on_reduced && i == handed_over_) hand_over();
    elsewhere += Clock::now() - there;
    if (group_ == nullptr || !options_.average_over_present) continue;
    const Bucket& bucket = plan_.buckets[i];
    div_(arenas_[static_cast<size_t>(bucket.arena)].range(0, bucket.first, bucket.end),
         static_cast<double>(present.ranks > 0 ? present.ranks : group_->size()));
  }
  if (group_ != nullptr) times_.all_reduced(elsewhere);
  agree_on_use();
  measure();
  learn_order(present.lowest);
  launched_ = 0;
  last_backward_ = false;
}

}  // namespace lockstep::dist
