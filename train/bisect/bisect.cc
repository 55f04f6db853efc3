#include "train/bisect/bisect.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include "core/base/check.h"
#include "train/bisect/operator_trace.h"
#include "train/bisect/replay.h"
#include "train/bisect/tolerance.h"
#include "train/report/run_comparison.h"
#include "train/run/final_model.h"

namespace lockstep::train {
namespace {

bool same_bits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

void require_comparable(const RecordedRun& a, const RecordedRun& b) {
  const std::vector<std::string> fields = incomparable_fields(a, b);
  LS_CHECK(fields.empty(), ConfigError,
           "[bisect] {} and {} have no common ancestor: expected runs of one model, data and seed "
           "in the same micro-batches, got {}. Compare runs that differ in ranks, strategy, "
           "device, settings of the optimizer, or programs alone.",
           a.name, b.name, fmt::join(fields, ", "));
}

void check_programs(const RecordedRun& run, bool allowed, std::vector<std::string>& notes) {
  const std::string difference = difference_to_here(run);
  if (difference.empty()) return;
  LS_CHECK(allowed, CheckpointError,
           "[bisect] {} was not computed by a process like this one, so that its bits cannot be "
           "computed again: {}. Use that program on such a processor (LOCKSTEP_CPU_CAPABILITY, "
           "ONEDNN_MAX_CPU_ISA), or add --other-programs and see whether the steps repeat.",
           run.name, difference);
  notes.push_back(
      fmt::format("{} was computed by another program or processor: {}", run.name, difference));
}

/// Whole checkpoints by step, of at most `most` steps.
std::map<int64_t, std::filesystem::path> checkpoints(const RecordedRun& run, int64_t most) {
  std::map<int64_t, std::filesystem::path> found;
  for (const CheckpointEntry& each : list_checkpoints(run.directory.checkpoints())) {
    if (each.complete && each.step <= most) found[each.step] = each.path;
  }
  return found;
}

/// Brings both to the newest state before step `last` that is the same in both: that of a
/// checkpoint, or the beginning.
void go_to_common_state(Replay& a, Replay& b, const RecordedRun& run_a, const RecordedRun& run_b,
                        int64_t last) {
  const auto of_a = checkpoints(run_a, last - 1), of_b = checkpoints(run_b, last - 1);
  for (auto each = of_a.rbegin(); each != of_a.rend(); ++each) {
    const auto other = of_b.find(each->first);
    if (other == of_b.end()) continue;
    a.restore_checkpoint(each->second);
    b.restore_checkpoint(other->second);
    if (Replay::state_difference(a, b).empty()) return;
  }
  a.restart();
  b.restart();
  const std::string difference = Replay::state_difference(a, b);
  LS_CHECK(difference.empty(), ConfigError,
           "[bisect] {} and {} have no common ancestor: expected runs that begin with the same "
           "weights, or a checkpoint in both that has the same; got another {} at the beginning. "
           "Look at model.weights and the seeds.",
           run_a.name, run_b.name, difference);
}

class Search {
 public:
  Search(const RecordedRun& a, const RecordedRun& b, Bisection& result)
      : run_a_(a), run_b_(b), a_(a, a), b_(b, a), result_(result) {
    LS_CHECK(a_.data() == b_.data(), DataError,
             "[bisect] {} and {} were trained on other data: expected the same contents. Compare "
             "runs of one text.",
             a.name, b.name);
  }

  /// Replays up to step `last`, from 1, from the newest common state, or the first.
  void run(int64_t last, bool from_the_beginning) {
    go_to_common_state(a_, b_, run_a_, run_b_, from_the_beginning ? 0 : last);
    result_.from_step = a_.steps_done();
    learn_buckets(a_);
    learn_buckets(b_);
    while (!result_.found && a_.steps_done() < last) step();
  }

  /// Replays up to step `last` with numbers that may differ by `tolerance`.
  void run_within(double tolerance, int64_t last, bool from_the_beginning) {
    const auto of_a = checkpoints(run_a_, from_the_beginning ? 0 : last - 1);
    of_a.empty() ? a_.restart() : a_.restore_checkpoint(of_a.rbegin()->second);
    result_.from_step = a_.steps_done();
    b_.take_state_of(a_);
    learn_buckets(a_);
    learn_buckets(b_);
    while (!result_.found && a_.steps_done() < last) step_within(tolerance);
  }

 private:
  /// The same step of both from the same state, with as many calls at a time as fit in memory.
  void step_within(double tolerance) {
    constexpr size_t kBytes = size_t{1} << 30;
    b_.take_state_of(a_);
    a_.save();
    b_.save();
    std::optional<size_t> first = 0;
    while (first && !result_.found) {
      a_.go_back();
      b_.go_back();
      ValueStore store(*first, kBytes);
      (void)a_.step(&store);
      ToleranceCheck check(store, tolerance);
      (void)b_.step(&check);
      ++result_.replayed;
      result_.compared += check.compared();
      if (check.found()) describe_beyond(*check.found());
      first = store.next();
    }
  }

  void describe_beyond(const BeyondTolerance& beyond) {
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

  /// A reducer's first step makes other calls than the later ones.
  static void learn_buckets(Replay& replay) {
    replay.save();
    (void)replay.step(nullptr);
    replay.go_back();
  }

  std::vector<TracedPart> traced(Replay& replay, const RecordedRun& run) {
    replay.save();
    OperatorTrace trace;
    const StepResult step = replay.step(&trace);
    compare_with_record(step, run);
    return trace.take();
  }

  void step() {
    const std::vector<TracedPart> of_a = traced(a_, run_a_);
    const std::vector<TracedPart> of_b = traced(b_, run_b_);
    ++result_.replayed;
    const std::optional<CallPlace> place = first_difference(of_a, of_b);
    if (!place) return;
    describe_place(*place, of_a, of_b);
    if (place->same_operator) capture(of_a[place->part].part, place->call);
  }

  void describe_place(const CallPlace& place, const std::vector<TracedPart>& of_a,
                      const std::vector<TracedPart>& of_b) {
    const auto call_of = [&](const std::vector<TracedPart>& parts) {
      const bool there = place.part < parts.size() && place.call < parts[place.part].calls.size();
      return there ? &parts[place.part].calls[place.call] : nullptr;
    };
    const TracedCall* const in_a = call_of(of_a);
    const TracedCall* const in_b = call_of(of_b);
    const TracedCall& known = in_a != nullptr ? *in_a : *in_b;
    OperatorDifference found;
    found.part = (place.part < of_a.size() ? of_a : of_b)[place.part].part;
    add_place(found);
    found.operator_name = in_a != nullptr ? in_a->op->name() : "none";
    if (!place.same_operator) found.operator_of_b = in_b != nullptr ? in_b->op->name() : "none";
    found.phase = name(known.phase);
    found.module = known.module;
    found.call = known.call;
    result_.found = std::move(found);
  }

  void add_place(OperatorDifference& found) const {
    found.micro_batches = a_.micro_batches();
    if (!found.part.micro_batch) return;
    found.leaf = *found.part.micro_batch / (a_.micro_batches() / a_.leaves());
  }

  /// Computes the step once more, and keeps what the call reads and writes in both.
  void capture(const StepPart& part, size_t call) {
    a_.go_back();
    b_.go_back();
    CallCapture of_a(part, call), of_b(part, call);
    (void)a_.step(&of_a);
    (void)b_.step(&of_b);
    ++result_.replayed;
    if (!of_a.captured() || !of_b.captured()) return;
    result_.found->inputs = differing_arguments(*of_a.captured(), *of_b.captured());
    result_.found->element =
        first_differing_element(of_a.captured()->written, of_b.captured()->written);
  }

  void compare_with_record(const StepResult& step, const RecordedRun& run) {
    const auto told = [&](const UnrepeatedStep& each) { return each.run == run.name; };
    if (std::ranges::any_of(result_.unrepeated, told)) return;
    const auto record = std::ranges::find(run.steps, step.step + 1, &MetricsRecord::step);
    if (record == run.steps.end()) return;
    const auto compare = [&](const char* quantity, std::optional<double> recorded, double now) {
      if (!recorded || same_bits(*recorded, now)) return true;
      result_.unrepeated.push_back({step.step + 1, run.name, quantity, *recorded, now});
      return false;
    };
    if (compare("loss", record->loss, step.loss)) {
      (void)compare("grad_norm", record->grad_norm, step.grad_norm);
    }
  }

  const RecordedRun& run_a_;
  const RecordedRun& run_b_;
  Replay a_;
  Replay b_;
  Bisection& result_;
};

/// The first step of both whose loss or norm differs by more than `tolerance`; 0: none.
int64_t first_step_beyond(double tolerance, const RecordedRun& a, const RecordedRun& b) {
  const auto beyond = [&](std::optional<double> x, std::optional<double> y) {
    if (!x || !y || same_bits(*x, *y)) return false;
    return !(std::abs(*x - *y) <= tolerance * std::max(std::abs(*x), std::abs(*y)));
  };
  for (const MetricsRecord& in_a : a.steps) {
    const auto in_b = std::ranges::find(b.steps, in_a.step, &MetricsRecord::step);
    if (in_b == b.steps.end()) continue;
    if (beyond(in_a.loss, in_b->loss) || beyond(in_a.grad_norm, in_b->grad_norm)) return in_a.step;
  }
  return 0;
}

}  // namespace

Bisection bisect(const RecordedRun& a, const RecordedRun& b, const BisectOptions& options) {
  Bisection result;
  require_comparable(a, b);
  const RunComparison comparison = compare_runs(a.steps, b.steps);
  LS_CHECK(comparison.common_steps > 0, DataError,
           "[bisect] {} and {} have no step in common: expected metrics of the same steps.", a.name,
           b.name);
  if (comparison.difference) result.differing_step = comparison.difference->step;
  if (comparison.missing) {
    result.notes.push_back(fmt::format("{} has {} steps, {} has {}: {} are in both", a.name,
                                       comparison.steps_of_a, b.name, comparison.steps_of_b,
                                       comparison.common_steps));
  }
  result.identical = !comparison.difference && compare_weights(a.directory, b.directory).identical;
  const bool exact = options.tolerance <= 0;
  if (!exact) {
    result.with_tolerance = true;
    result.differing_step = first_step_beyond(options.tolerance, a, b);
    result.identical = result.differing_step == 0;
  }
  if (result.identical && !options.replay_equal) return result;
  check_programs(a, options.other_programs, result.notes);
  check_programs(b, options.other_programs, result.notes);
  for (const std::string& field : changed_fields(a, b)) {
    result.notes.push_back("the configs differ: " + field);
  }
  Search search(a, b, result);
  const int64_t last_of_both = std::min(a.steps.back().step, b.steps.back().step);
  const int64_t last = result.differing_step > 0 ? result.differing_step : last_of_both;
  exact ? search.run(last, result.identical)
        : search.run_within(options.tolerance, last, result.identical);
  return result;
}

}  // namespace lockstep::train
