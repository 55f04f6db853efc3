#include "train/bisect/replay_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/check.h"
#include "train/run/checkpoint_state.h"

namespace lockstep::train {
namespace {

bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

/// Whole checkpoints by step, of at most `most` steps.
std::map<int64_t, std::filesystem::path> checkpoints(const RecordedRun& run, int64_t most) {
  std::map<int64_t, std::filesystem::path> found;
  for (const CheckpointEntry& each : list_checkpoints(run.directory.checkpoints())) {
    if (each.complete && each.step <= most) found[each.step] = each.path;
  }
  return found;
}

/// A reducer's first step makes other calls than the later ones.
void learn_buckets(Replay& replay) {
  replay.save();
  (void)replay.step();
  replay.go_back();
}

}  // namespace

ReplaySearch::ReplaySearch(const RecordedRun& a, const RecordedRun& b, const ReplayOptions& options,
                           Bisection& result)
    : run_a_(a), run_b_(b), a_(a, a, options), b_(b, a, options), result_(result) {
  LS_CHECK(a_.micro_batch_size() == b_.micro_batch_size(), ConfigError,
           "[bisect] micro-batches of {} have {} samples, of {} {}: expected as many, to compare "
           "calls. Compare runs whose ranks divide a step into the same micro-batches "
           "(train.leaves).",
           a.name, a_.micro_batch_size(), b.name, b_.micro_batch_size());
  LS_CHECK(a_.data() == b_.data(), DataError,
           "[bisect] {} and {} were trained on other data: expected the same contents. Compare "
           "runs of one text.",
           a.name, b.name);
}

/// Brings both to the newest state before step `last` that is the same in both: that of a
/// checkpoint, or the beginning.
void ReplaySearch::go_to_common_state(int64_t last) {
  const auto of_a = checkpoints(run_a_, last - 1), of_b = checkpoints(run_b_, last - 1);
  for (auto each = of_a.rbegin(); each != of_a.rend(); ++each) {
    const auto other = of_b.find(each->first);
    if (other == of_b.end()) continue;
    a_.restore_checkpoint(each->second);
    b_.restore_checkpoint(other->second);
    if (Replay::state_difference(a_, b_).empty()) return;
  }
  a_.restart();
  b_.restart();
  const std::string difference = Replay::state_difference(a_, b_);
  LS_CHECK(difference.empty(), ConfigError,
           "[bisect] {} and {} have no common ancestor: expected runs that begin with the same "
           "weights, or a checkpoint in both that has the same; got another {} at the beginning. "
           "Look at model.weights and the seeds.",
           run_a_.name, run_b_.name, difference);
}

void ReplaySearch::run(int64_t last, bool from_the_beginning) {
  go_to_common_state(from_the_beginning ? 0 : last);
  result_.from_step = a_.steps_done();
  learn_buckets(a_);
  learn_buckets(b_);
  while (!result_.found && a_.steps_done() < last) step();
}

void ReplaySearch::run_within(double tolerance, int64_t last, bool from_the_beginning) {
  const auto of_a = checkpoints(run_a_, from_the_beginning ? 0 : last - 1);
  of_a.empty() ? a_.restart() : a_.restore_checkpoint(of_a.rbegin()->second);
  result_.from_step = a_.steps_done();
  b_.take_state_of(a_);
  learn_buckets(a_);
  learn_buckets(b_);
  while (!result_.found && a_.steps_done() < last) step_within(tolerance);
}

/// The same step of both from the same state, with as many calls at a time as fit in memory.
void ReplaySearch::step_within(double tolerance) {
  constexpr size_t kBytes = size_t{1} << 30;
  b_.take_state_of(a_);
  a_.save();
  b_.save();
  std::optional<size_t> first = 0;
  while (first && !result_.found) {
    a_.go_back();
    b_.go_back();
    ValueStore store(*first, kBytes);
    (void)a_.step({&store});
    ToleranceCheck check(store, tolerance);
    (void)b_.step({&check});
    ++result_.replayed;
    result_.compared += check.compared();
    if (check.found()) describe_beyond(*check.found());
    first = store.next();
  }
}

void ReplaySearch::describe_beyond(const BeyondTolerance& beyond) {
  OperatorDifference found;
  found.part = {a_.steps_done() - 1, beyond.name.micro_batch};
  found.operator_name = beyond.name.operator_name;
  found.call = beyond.name.call;
  found.phase = name(beyond.phase);
  found.module = beyond.module;
  found.element = beyond.element;
  found.distance = beyond.distance;
  add_place(found);
  result_.found = std::move(found);
}

ReplaySearch::TracedStep ReplaySearch::traced(Replay& replay, const RecordedRun& run) {
  replay.save();
  std::deque<OperatorTrace> traces(static_cast<size_t>(replay.ranks()));
  std::vector<StepWatch*> watches;
  for (OperatorTrace& each : traces) watches.push_back(&each);
  const StepResult step = replay.step(watches);
  compare_with_record(step, run);
  TracedStep traced;
  for (OperatorTrace& each : traces) traced.push_back(each.take());
  return traced;
}

void ReplaySearch::step() {
  const TracedStep of_a = traced(a_, run_a_);
  const TracedStep of_b = traced(b_, run_b_);
  ++result_.replayed;
  std::vector<RankDifference> differences;
  for (size_t rank = 0; rank < of_a.size(); ++rank) {
    const std::optional<CallPlace> place = first_difference(of_a[rank], of_b[rank]);
    if (!place) continue;
    const bool in_a = place->part < of_a[rank].size();
    differences.push_back({.rank = rank,
                           .place = *place,
                           .part = (in_a ? of_a : of_b)[rank][place->part].part,
                           .element = {}});
  }
  if (differences.empty()) return;
  compute_again(differences);
  // A wrong number reaches other ranks through sums, where inputs differ already.
  const auto order = [](const RankDifference& each) {
    return std::tuple(!each.begins_there, !each.part.micro_batch, each.part.micro_batch);
  };
  const RankDifference& first = *std::ranges::min_element(differences, {}, order);
  describe_difference(first, of_a[first.rank], of_b[first.rank]);
}

void ReplaySearch::describe_difference(const RankDifference& difference,
                                       const std::vector<TracedPart>& of_a,
                                       const std::vector<TracedPart>& of_b) {
  const CallPlace& place = difference.place;
  const auto call_of = [&](const std::vector<TracedPart>& parts) {
    const bool there = place.part < parts.size() && place.call < parts[place.part].calls.size();
    return there ? &parts[place.part].calls[place.call] : nullptr;
  };
  const TracedCall* const in_a = call_of(of_a);
  const TracedCall* const in_b = call_of(of_b);
  const TracedCall& known = in_a != nullptr ? *in_a : *in_b;
  OperatorDifference found;
  found.part = difference.part;
  if (a_.ranks() > 1) found.rank = static_cast<int>(difference.rank);
  add_place(found);
  found.operator_name = in_a != nullptr ? in_a->op->name() : "none";
  if (!place.same_operator) found.operator_of_b = in_b != nullptr ? in_b->op->name() : "none";
  found.phase = name(known.phase);
  found.module = known.module;
  found.call = known.call;
  found.inputs = difference.inputs;
  found.element = difference.element;
  result_.found = std::move(found);
}

void ReplaySearch::add_place(OperatorDifference& found) const {
  found.micro_batches = a_.micro_batches();
  if (!found.part.micro_batch) return;
  found.leaf = *found.part.micro_batch / (a_.micro_batches() / a_.leaves());
}

/// Computes the step once more, and keeps what the calls in question read and write in both.
void ReplaySearch::compute_again(std::vector<RankDifference>& differences) {
  const auto is_captured = [](const RankDifference& each) { return each.place.same_operator; };
  if (std::ranges::none_of(differences, is_captured)) return;
  std::deque<CallCapture> of_a, of_b;
  const auto ranks = static_cast<size_t>(a_.ranks());
  std::vector<StepWatch*> watches_a(ranks, nullptr), watches_b(ranks, nullptr);
  for (const RankDifference& each : differences) {
    CallCapture& in_a = of_a.emplace_back(each.part, each.place.call);
    CallCapture& in_b = of_b.emplace_back(each.part, each.place.call);
    if (!each.place.same_operator) continue;
    watches_a[each.rank] = &in_a;
    watches_b[each.rank] = &in_b;
  }
  a_.go_back();
  b_.go_back();
  (void)a_.step(watches_a);
  (void)b_.step(watches_b);
  ++result_.replayed;
  for (size_t i = 0; i < differences.size(); ++i) {
    const auto& in_a = of_a[i].captured();
    const auto& in_b = of_b[i].captured();
    if (!in_a || !in_b) continue;
    differences[i].inputs = differing_arguments(*in_a, *in_b);
    differences[i].element = first_differing_element(in_a->written, in_b->written);
    differences[i].begins_there = differences[i].inputs.empty();
  }
}

void ReplaySearch::compare_with_record(const StepResult& step, const RecordedRun& run) {
  const auto told = [&](const UnrepeatedStep& each) { return each.run == run.name; };
  if (std::ranges::any_of(result_.unrepeated, told)) return;
  const auto record = std::ranges::find(run.steps, step.step + 1, &MetricsRecord::step);
  if (record == run.steps.end()) return;
  const auto compare = [&](const char* quantity, std::optional<double> recorded, double now) {
    if (!recorded || same_number(*recorded, now)) return true;
    result_.unrepeated.push_back({step.step + 1, run.name, quantity, *recorded, now});
    return false;
  };
  if (compare("loss", record->loss, step.loss)) {
    (void)compare("grad_norm", record->grad_norm, step.grad_norm);
  }
}

}  // namespace lockstep::train
