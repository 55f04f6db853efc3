// The part of TrainingRun that takes the steps, and deals with those that went wrong.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "core/base/check.h"
#include "dist/group/failure.h"
#include "train/run/memory_rescue.h"
#include "train/run/run_waits.h"
#include "train/run/training_run.h"

namespace lockstep::train {

namespace {

/// The checkpoint to go back to.
std::filesystem::path newest_checkpoint(const std::filesystem::path& folder) {
  const std::optional<CheckpointEntry> newest = newest_whole(folder);
  LS_CHECK(newest, CheckpointError, "[checkpoint] {} holds no checkpoint to go back to.",
           folder.string());
  return newest->path;
}

}  // namespace

RunSummary TrainingRun::run(const RunOptions& options) {
  if (nothing_to_train_) return run_without_steps(options);
  RunSummary summary;
  summary.final_loss = std::numeric_limits<double>::quiet_NaN();
  if (change_ && !takes_over()) {
    summary.end = RunEnd::kRegrouped;
    return summary;
  }
  if (!change_) {
    training_began_ = Clock::now();
    recorded_ = trainer_.steps_done();
  }
  begin_account(options);
  drop_steps_after(directory_.metrics(), trainer_.steps_done());
  RunLog log(directory_, options.terminal,
             {.total_steps = settings_.stop.steps,
              .first_step = recorded_ + 1,
              .log_every = settings_.log_every,
              .format = options.format,
              .log_error = options.log_error});
  trainer_.set_stop_request(options.stop);
  if (options.keep_slow_ranks) slow_ranks_ = SlowRankWatch(0);
  summary.first_step = trainer_.steps_done();
  times_->spend_on_start();
  if (change_) {
    log.note(fmt::format("{}; going on with {} rank{} from step {}", change_text(*change_),
                         change_->left, change_->left == 1 ? "" : "s", trainer_.steps_done()));
  }
  if (can_roll_back_ && saved_step_ < 0) checkpoint(log, options);
  open_door();
  try {
    take_steps(log, options, summary);
    close_door(summary.end);
    if (!slow_) end_run(options, summary);
  } catch (const std::exception& error) {
    if (goes_on_after(error)) {
      log.close();
      summary.end = RunEnd::kRegrouped;
      return summary;
    }
    // What is worth keeping was saved before a NonFiniteError was thrown, and the memory of a
    // device that computes wrong is not to be trusted.
    const bool keeps = dynamic_cast<const NonFiniteError*>(&error) == nullptr &&
                       dynamic_cast<const DeviceError*>(&error) == nullptr;
    if (keeps) keep_steps_done(log, error);
    replicas_.end_with(error);
    throw;
  }
  if (slow_) {
    start_.end(kStopped);
    log.close();
    replicas_.announce_leaving_out(slow_->rank, slow_ranks_.text(*slow_));
  }
  const std::string_view how = summary.end == RunEnd::kStopped ? kStopped : kFinished;
  start_.end(how);
  times_->end(summary.steps, how);
  summary.times = times_->so_far();
  summary.told_lost_log = log.told_lost_log();
  log.close();
  return summary;
}

void TrainingRun::end_run(const RunOptions& options, RunSummary& summary) {
  if (saver_.is_asynchronous()) summary.saves = save_counts_;
  summary.steps = trainer_.steps_done();
  summary.ended_early = trainer_.early_end().has_value();
  if (summary.end != RunEnd::kStopped) finish(summary, end_after(summary.steps), options);
  summary.overlap = report_overlap();
  replicas_.announce_end(summary.end);
}

void TrainingRun::take_steps(RunLog& log, const RunOptions& options, RunSummary& summary) {
  const auto start = training_began_;
  PaceWatch pace(trainer_.schedule().warmup_steps / 2);
  const bool holds_out = trainer_.task().holds_out();
  const auto save_left = [&] {  // seconds until a checkpoint that is begun now is written
    return saver_.is_under_way() ? 2 * save_seconds_ : save_seconds_;
  };

  StopRule rule = settings_.stop;
  rule.time_limit = options.time_limit;
  bool last = rule.all_steps_done(trainer_.steps_done());
  std::optional<StepResult> unfinished = unfinished_step();
  if (change_ && !unfinished &&
      (last || is_due(trainer_.steps_done(), settings_.checkpoint_every))) {
    checkpoint(log, options);  // unless it is there
  }
  while ((!last || unfinished) && summary.end != RunEnd::kStopped && !slow_) {
    const StepResult step =
        unfinished ? *std::exchange(unfinished, std::nullopt) : take_step(log, options);
    summary.tokens += step.tokens;
    summary.seconds += step.seconds;
    summary.final_loss = step.loss;
    const double elapsed = seconds_since(start);
    last = rule.is_over(trainer_.steps_done(), elapsed);
    const bool out_of_time = rule.is_out_of_time(elapsed, step.seconds + save_left());
    bool cut_short = false;  // an evaluation, by a rank that was asked to stop
    const auto stopping = [&] {
      return step.stop || cut_short || out_of_time || (options.stop && options.stop());
    };

    if (saver_.has_ended()) {
      finish_save(log);
      spent_on(TimeUse::kCheckpoint);
    }
    StepReport report = report_of(step);
    add_ranks(report);
    stall_seconds_ = -1;
    summary.step_durations.add(report.step_ms);
    log.show(report);
    log_buckets(log);
    log_compiled(step, log);
    std::optional<EvaluationReport> evaluated;
    const bool right = step.audit.empty();
    const bool is_recorded = recorded_ >= report.step;  // before a rank was lost
    if (right && holds_out && !is_recorded && (last || is_due(report.step, settings_.eval_every)) &&
        !stopping()) {
      const WaitFor waiting(options, kWaitForBatch);
      // Losses that are compared are all of the same part of the data.
      evaluated = evaluate(report, last && !settings_.held_out.compares(), summary);
      cut_short = !evaluated;
    }
    const bool is_best = evaluated && compare(*evaluated);
    last = last || held_out_.is_over();
    if (!is_recorded) log.record(report, evaluated, &*times_);
    recorded_ = report.step;
    recorded_held_out_ = held_out_.memory();
    if (change_) tell_change(seconds_since(change_->noticed));
    if (evaluated && held_out_.is_over()) log.note(held_out_.reason());
    handle_audit(step, log);
    if (!right) {
      last = false;
      slow_.reset();  // the state is not saved before the step is done
      continue;
    }
    if (step.outcome.spike) {
      handle_spike(step, log);
      last = last && rule.all_steps_done(trainer_.steps_done());
    }
    const NonFinite action = guard_.after(step.step, step.outcome.finite);
    if (!step.outcome.finite) {
      handle_non_finite(step, action, log, options);
      last = last && rule.all_steps_done(trainer_.steps_done());
    }
    if (is_due(report.step, settings_.sample_every) && !last) show_sample(log, options);
    const bool complete = last && (evaluated || !holds_out);
    if (stopping() && !complete) summary.end = RunEnd::kStopped;
    if (last || summary.end == RunEnd::kStopped) slow_.reset();
    if (last || summary.end == RunEnd::kStopped || slow_ ||
        (is_best && trainer_.steps_done() == report.step) ||
        is_due(trainer_.steps_done(), settings_.checkpoint_every)) {
      checkpoint(log, options);
    }
    const int64_t done = trainer_.steps_done();
    // Not of a step that is being saved: its folder is that of what would be written after a loss.
    const bool is_saved = done == saved_step_ || (saver_.is_under_way() && done == saving_step_);
    if (is_due(done, copies_.every()) && done == report.step && step.outcome.finite && !is_saved &&
        !last && summary.end != RunEnd::kStopped && !slow_) {
      replicas_.announce_copies(copies_, held_out_.memory(), saver_.is_under_way());
    }
    if (settings_.fits_time && !last && summary.end != RunEnd::kStopped) {
      if (const auto step_seconds = pace.step_seconds(done)) {
        fit_to_time(log, {done, seconds_since(start), *step_seconds});
        rule.steps = settings_.stop.steps;
      }
    }
    if (!last && summary.end != RunEnd::kStopped && !slow_) let_in(step, log);
  }
  trainer_.give_up_next();
  {
    const WaitFor waiting(options, kWaitForCheckpoint);
    const auto begin = Clock::now();
    times_->spend_other();
    finish_save(log);
    spent_on(TimeUse::kCheckpoint);
    save_counts_.stall_seconds += seconds_since(begin);
  }
}

/// Ends the run early where its time limit asks for that.
void TrainingRun::fit_to_time(RunLog& log, const RunPace& pace) {
  if (trainer_.early_end()) return;
  const int64_t wanted = settings_.stop.steps;
  const auto end = early_end(trainer_.schedule(), settings_.stop.time_budget, pace);
  if (!end) return;
  replicas_.announce_early_end(trainer_, *end);
  take_early_end();
  write_text(directory_.config(), config_text_);
  log.set_total_steps(end->steps);
  log.note(fmt::format(
      "the time limit leaves time for {} of {} steps, over which the learning rate falls "
      "now. {} repeats the run",
      end->steps, wanted, directory_.config().string()));
}

StepResult TrainingRun::take_step(RunLog& log, const RunOptions& options) {
  if (options.before_step) options.before_step(trainer_.steps_done());
  deal_out(log);
  memory_.begin_step(trainer_.steps_done() + 1);
  const bool another = may_begin_next_ahead();
  times_->spend_other();
  replicas_.announce_step(another, compares_next());
  StepResult step = trainer_.step(another);
  last_step_ = step;
  times_->spend_on_step(step.data_wait_ms / 1e3, step.outcome.updated());
  replicas_.end_step(step);
  memory_.end_step(step.step + 1);
  return step;
}

void TrainingRun::keep_steps_done(RunLog& log, const std::exception& why) noexcept {
  const int64_t step = trainer_.steps_done();
  try {
    finish_save(log);
  } catch (const std::exception&) {
    // The error that ends the run counts. In shards, it is why they are not all there.
  }
  try {
    if (goes_back_) return;
    if (step > 0 && saved_step_ < step && saving_step_ < step && recorded_ == step &&
        trainer_.keeps_steps_done()) {
      log.sync();
      saving_step_ = step;
      // Without the other ranks, one of which may be the reason.
      CheckpointRecord record = checkpoint_record();
      record.manifest.after_error = true;
      write_checkpoint(directory_.checkpoints(), record, whole_state(trainer_));
      after_save(step, retention());
      log.note(fmt::format("saved the state after step {}, from which the run can go on", step));
      return;
    }
    keep_copies(log, why);
  } catch (const std::exception& error) {
    log.note(fmt::format("the state after step {} could not be saved: {}", step, error.what()));
  }
}

void TrainingRun::keep_copies(RunLog& log, const std::exception& why) {
  const bool is_stop = dynamic_cast<const dist::StoppedError*>(&why) != nullptr;
  if (is_stop || copies_.newest() == nullptr) return;
  // The others come once they know that training is over.
  replicas_.end_with(why);
  const dist::ProcessGroup& group = *replicas_.group();
  const MemoryRescue rescue{directory_, group.start_id(), group.rank(), group.size()};
  if (const auto step = rescue.lead(copies_, retention(), [](CheckpointManifest&) {})) {
    log.note(fmt::format("saved the state after step {} from memory, from which the run can go on",
                         *step));
  }
}

void TrainingRun::go_back(RunLog& log) {
  finish_save(log);
  end_giving();
  const int64_t next_batch = trainer_.position().batch;
  const SpikeRow row = trainer_.spikes().memory().row;
  const std::filesystem::path newest = newest_checkpoint(directory_.checkpoints());
  const CheckpointManifest manifest = verify_checkpoint(newest);
  goes_back_ = true;
  restore(trainer_, newest, manifest);
  held_out_.remember(manifest.held_out);
  trainer_.set_position({trainer_.steps_done(), next_batch});
  trainer_.spikes().set_row(row);
  replicas_.announce_state(trainer_, copies_);
  tell_held_out();
  goes_back_ = false;
  // Resuming from that checkpoint would come to the same step and roll back again, so it need not
  // be rewritten with the new position.
  saved_step_ = recorded_ = trainer_.steps_done();
  log.go_back(trainer_.steps_done());
  times_->go_back(trainer_.steps_done());
}

void TrainingRun::handle_spike(const StepResult& step, RunLog& log) {
  const int64_t number = step.step + 1;
  const std::string found = fmt::format("step {}: {}", number, step.spike);
  if (trainer_.spikes().rule().action == SpikeAction::kRollback) {
    go_back(log);
    log.note(fmt::format("{}. Going back to step {}, leaving out the batches since", found,
                         trainer_.steps_done()));
  } else {
    log.note(fmt::format("{}{}. Its samples: lockstep data of-step {} {}", found,
                         step.outcome.left_out ? ", and is left out" : "",
                         directory_.path().string(), number));
  }
}

void TrainingRun::handle_audit(const StepResult& step, RunLog& log) {
  audit_found_ = step.audit;
  if (step.audit.empty()) {
    failed_audits_ = 0;
    return;
  }
  constexpr int64_t kMost = 3;
  const std::string found = fmt::format("[audit] step {}: {}", step.step + 1, step.audit);
  LS_CHECK(++failed_audits_ < kMost, DeviceError,
           "{}. That was so {} times in a row. Go on without that host.", found, kMost);
  log.note(found + ". The step is done again");
  recorded_ = trainer_.steps_done();
  log.go_back(trainer_.steps_done());
  times_->go_back(trainer_.steps_done());
}

void TrainingRun::handle_non_finite(const StepResult& step, NonFinite action, RunLog& log,
                                    const RunOptions& options) {
  if (step.outcome.spoiled) {
    throw NonFiniteError(fmt::format(
        "[train] step {} is not finite: expected numbers, got loss {} and gradient norm {}: {}. "
        "Weights were updated as it ran (optimizer.optimizer_in_backward), so that nothing of it "
        "is saved: lower optimizer.learning_rate or lengthen schedule.warmup_steps, and go on from "
        "the newest of {}.",
        step.step + 1, step.loss, step.grad_norm, step.non_finite,
        directory_.checkpoints().string()));
  }
  if (action == NonFinite::kSkip) {
    log.note(fmt::format("step {} is not finite and left out: {}", step.step + 1, step.non_finite));
    return;
  }
  if (action == NonFinite::kRollback) {
    go_back(log);
    log.note(fmt::format(
        "step {} is not finite: {}. Going back to step {}, leaving out the batches since",
        step.step + 1, step.non_finite, trainer_.steps_done()));
    return;
  }
  // Saves the state before the step, so that training can resume from it with other settings.
  const Position after = trainer_.position();
  trainer_.set_position({after.step - 1, after.batch - 1});
  checkpoint(log, options);
  finish_save(log);
  throw NonFiniteError(fmt::format(
      "[train] step {} is not finite: expected numbers, got loss {} and gradient norm {}: {}. "
      "Lower "
      "optimizer.learning_rate or lengthen schedule.warmup_steps; the state before the step is in "
      "{}.",
      step.step + 1, step.loss, step.grad_norm, step.non_finite,
      directory_.checkpoints().string()));
}

bool TrainingRun::compares_next() const {
  const int64_t step = trainer_.steps_done() + 1;
  const bool often = settings_.balances || slow_ranks_.is_on();
  return is_due(step, settings_.log_every) || (often && is_due(step, Balance::kEvery));
}

void TrainingRun::add_ranks(StepReport& report) {
  if (settings_.balances && !std::exchange(told_deal_, true)) {
    report.rank_leaves = trainer_.deal().counts();
  }
  std::optional<RankComparison> comparison = replicas_.take_comparison();
  if (!comparison) return;
  slow_ = slow_ranks_.add(*comparison);
  if (settings_.balances) next_deal_ = balance_.next(trainer_.deal(), *comparison);
  report.ranks = with_slowest(*std::move(comparison));
}

void TrainingRun::deal_out(RunLog& log) {
  if (!next_deal_) return;
  const dist::LeafDeal deal = *std::exchange(next_deal_, std::nullopt);
  log.note("balance: " + deal_text(deal, trainer_.deal()));
  replicas_.announce_deal(trainer_, deal);
  told_deal_ = false;
}

}  // namespace lockstep::train
