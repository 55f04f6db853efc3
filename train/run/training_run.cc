#include "train/run/training_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"
#include "core/base/json_line.h"
#include "core/base/spans/span.h"
#include "core/base/terminal_text.h"
#include "core/tensor/allocator.h"
#include "train/build.h"
#include "train/gradient_options.h"
#include "train/report/metrics.h"
#include "train/run/final_model.h"
#include "train/run/resume.h"

namespace lockstep::train {

namespace {

using Clock = std::chrono::steady_clock;

/// What a stop waits for in an evaluation.
constexpr const char* kBatch = "this batch of the evaluation";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

NonFinite policy_of(const config::TrainConfig& config) {
  if (config.non_finite() == config::TrainConfig::SKIP) return NonFinite::kSkip;
  if (config.non_finite() == config::TrainConfig::ROLLBACK) return NonFinite::kRollback;
  return NonFinite::kStop;
}

bool has_checkpoint(const RunDirectory& directory) {
  const auto found = list_checkpoints(directory.checkpoints());
  return std::ranges::any_of(found, &CheckpointEntry::complete);
}

/// The task of this rank. Drops the path of initial weights if a checkpoint replaces them, as the
/// file need not exist then, and if the ranks of a sharded model read them (`read_later`).
std::unique_ptr<Task> task_of(const config::RunConfig& config, const RunDirectory& directory,
                              const dist::ProcessGroup* group) {
  config::RunConfig built = config;
  if (has_checkpoint(directory) || is_sharded(config, group)) {
    built.mutable_model()->set_weights("");
  }
  return build_task(built, share_of_step(config.train(), group));
}

/// The newest checkpoint that is whole by its manifest.
std::filesystem::path newest_checkpoint(const std::filesystem::path& folder) {
  const std::vector<CheckpointEntry> found = list_checkpoints(folder);
  const auto newest =
      std::find_if(found.rbegin(), found.rend(), std::mem_fn(&CheckpointEntry::complete));
  LS_CHECK(newest != found.rend(), CheckpointError,
           "[checkpoint] {} holds no checkpoint to go back to.", folder.string());
  return newest->path;
}
/// Tells the caller what a stop has to wait for until the end of the scope, then "this step" again.
class WaitFor {
 public:
  WaitFor(const RunOptions& options, const char* what) : options_(options) { tell(what); }
  ~WaitFor() { tell("this step"); }
  WaitFor(const WaitFor&) = delete;
  WaitFor& operator=(const WaitFor&) = delete;

 private:
  void tell(const char* what) const {
    if (options_.waiting_for) options_.waiting_for(what);
  }

  const RunOptions& options_;
};

bool is_due(int64_t steps, int64_t every) { return every > 0 && steps % every == 0; }

}  // namespace

TrainingRun::Settings TrainingRun::settings_of(const config::RunConfig& config) {
  const config::TrainConfig& train = config.train();
  Settings settings;
  settings.stop.steps = train.steps();
  settings.stop.time_budget = train.time_limit_seconds();
  settings.log_every = train.log_every();
  settings.eval_every = train.eval_every();
  settings.eval_batches = train.eval_batches();
  settings.sample_every = train.sample_every();
  settings.sample_bytes = train.sample_bytes();
  settings.seed = config.seed();
  settings.peak_tflops = train.peak_tflops();
  settings.checkpoint_every = config.checkpoint().every_steps();
  settings.retention = {config.checkpoint().keep_last(), config.checkpoint().keep_every()};
  return settings;
}

TrainingRun::TrainingRun(const config::RunConfig& config, const RunDirectory& directory,
                         const std::string& environment)
    : TrainingRun(config, directory, environment, nullptr) {}

TrainingRun::TrainingRun(const config::RunConfig& config, const RunDirectory& directory,
                         const std::string& environment, std::unique_ptr<Task> task,
                         dist::ProcessGroup* group)
    : directory_(directory),
      lock_(directory),
      start_(directory, group),
      settings_(settings_of(config)),
      name_(config.name()),
      config_text_(config::to_text(config)),
      memory_(config.memory(), device_of(config), directory),
      replicas_(group),
      trainer_(Trainer::create(config, task ? std::move(task) : task_of(config, directory, group),
                               group)),
      saver_(config, trainer_, replicas_.group()),
      guard_(policy_of(config.train()), config.train().non_finite_limit()),
      can_roll_back_(policy_of(config.train()) == NonFinite::kRollback ||
                     trainer_.spikes().rule().action == SpikeAction::kRollback) {
  LS_CHECK(config.audit().every_steps() == 0 || replicas_.group() != nullptr, ConfigError,
           "[audit] audit.every_steps is {} with one rank: expected several, which compute each "
           "other's micro-batches. Start more, or leave audit out.",
           config.audit().every_steps());
  const Resumption resumption = resume(trainer_, directory_.checkpoints(), config);
  notes_ = resumption.notes;
  for (std::string& note : trainer_.task().data_notes()) notes_.push_back(std::move(note));
  if (resumption.from) {
    saved_step_ = trainer_.steps_done();
    restored_weights_ = resumption.weights;
    nothing_to_train_ = settings_.stop.all_steps_done(saved_step_);
  } else {
    require_no_history(directory_);
    if (!trainer_.has_whole_weights()) trainer_.read_later({config.model().weights(), {}});
  }
  // What a killed process left: its temporary files, and a removal that it had begun.
  remove_stale_partials(directory_.path());
  // The last removal may have been interrupted, too; a run that has its model changes no more.
  if (resumption.from && !is_finished()) {
    for (std::string& problem :
         remove_old_checkpoints(directory_.checkpoints(), settings_.retention)) {
      notes_.push_back(std::move(problem));
    }
  }
  if (nothing_to_train_) {
    lock_.leave_no_trace();
  } else {
    write_text(directory_.config(), config_text_);
    write_text(directory_.environment(), environment);
    start_.begin();
  }
  replicas_.require_same_model(trainer_.task().model());
  replicas_.require_same_data(trainer_.task());
  replicas_.announce_state(trainer_);
}

void TrainingRun::begin_account(const RunOptions& options) {
  times_.emplace(directory_, trainer_.steps_done(), options.begun.value_or(constructed_));
}

void TrainingRun::spent_on(TimeUse use) {
  if (times_) times_->spend(use);
}

bool TrainingRun::may_begin_next_ahead() const {
  const int64_t done = trainer_.steps_done() + 1;
  return !settings_.stop.all_steps_done(done) && !memory_.wants_whole_steps() &&
         !(trainer_.task().holds_out() && is_due(done, settings_.eval_every)) &&
         !is_due(done, settings_.sample_every) && !is_due(done, settings_.checkpoint_every);
}

StepReport TrainingRun::report_of(const StepResult& step) const {
  StepReport report;
  report.step = step.step + 1;
  report.loss = step.loss;
  report.grad_norm = step.grad_norm;
  report.learning_rate = step.learning_rate;
  report.step_ms = step.seconds * 1e3;
  report.data_wait_ms = step.data_wait_ms;
  report.exposed_comm_ms = step.exposed_comm_ms;
  report.sent_bytes = step.sent_bytes;
  report.tokens_per_s = static_cast<double>(step.tokens) / step.seconds;
  report.memory_bytes = static_cast<uint64_t>(allocator(trainer_.device()).stats().peak_allocated);
  report.mfu = model_flops_used(trainer_.task().flops_per_token(), report.tokens_per_s,
                                settings_.peak_tflops);
  if (trainer_.scaler().is_enabled()) report.loss_scale = step.loss_scale;
  report.checkpoint_ms = saver_.is_asynchronous() ? stall_seconds_ * 1e3 : -1;
  report.skipped = !step.outcome.updated();
  report.non_finite = step.non_finite;
  report.spike = step.spike;
  report.audit = audit_found_;
  return report;
}

std::optional<EvaluationReport> TrainingRun::evaluate(const StepReport& step, bool whole,
                                                      RunSummary& summary) {
  const int64_t max_batches = whole ? 0 : settings_.eval_batches;
  if (times_) times_->spend_other();
  const Range range("evaluation");
  replicas_.announce_evaluation(max_batches);
  const std::optional<Evaluation> evaluation = trainer_.evaluate(max_batches);
  spent_on(TimeUse::kEvaluation);
  if (!evaluation) return std::nullopt;
  if (whole) summary.held_out = *evaluation;
  return EvaluationReport{.step = step.step,
                          .train_loss = step.loss,
                          .loss = evaluation->loss,
                          .bits_per_byte = evaluation->bits_per_byte(),
                          .accuracy = evaluation->accuracy,
                          .sampled = !whole};
}

void TrainingRun::finish(RunSummary& summary, RunEnd end, const RunOptions& options) {
  summary.end = end;
  // A run that was stopped between its last step and this point has still to do it.
  if (trainer_.task().holds_out() && summary.held_out.targets == 0) {
    const WaitFor waiting(options, kBatch);
    const auto evaluated = evaluate({.step = summary.steps}, true, summary);
    if (!evaluated) summary.end = RunEnd::kStopped;
  }
  export_model();
  if (options.final_sample && trainer_.is_sharded() && !(options.stop && options.stop())) {
    summary.sample =
        replicas_.announce_sample(trainer_, settings_.sample_bytes, settings_.seed, options.stop);
  }
}

RunSummary TrainingRun::run_without_steps(const RunOptions& options) {
  trainer_.set_stop_request(options.stop);
  RunSummary summary;
  summary.first_step = summary.steps = trainer_.steps_done();
  summary.final_loss = std::numeric_limits<double>::quiet_NaN();
  finish(summary, settings_.stop.end_after(summary.steps), options);
  replicas_.announce_end(summary.end);
  return summary;
}

RunSummary TrainingRun::run(const RunOptions& options) {
  if (nothing_to_train_) return run_without_steps(options);
  const auto start = Clock::now();
  begin_account(options);
  drop_steps_after(directory_.metrics(), trainer_.steps_done());
  RunLog log(directory_, options.terminal,
             {.total_steps = settings_.stop.steps,
              .first_step = trainer_.steps_done() + 1,
              .log_every = settings_.log_every,
              .format = options.format,
              .log_error = options.log_error});
  const bool holds_out = trainer_.task().holds_out();
  trainer_.set_stop_request(options.stop);
  RunSummary summary;
  summary.first_step = trainer_.steps_done();
  summary.final_loss = std::numeric_limits<double>::quiet_NaN();
  times_->spend_on_start();
  if (can_roll_back_ && saved_step_ < 0) checkpoint(log, options);
  const auto save_left = [&] {  // seconds until a checkpoint that is begun now is written
    return saver_.is_under_way() ? 2 * save_seconds_ : save_seconds_;
  };

  StopRule rule = settings_.stop;
  rule.time_limit = options.time_limit;
  bool last = rule.all_steps_done(trainer_.steps_done());
  while (!last && summary.end != RunEnd::kStopped) {
    if (options.before_step) options.before_step(trainer_.steps_done());
    memory_.begin_step(trainer_.steps_done() + 1);
    const bool another = may_begin_next_ahead();
    times_->spend_other();
    replicas_.announce_step(another, is_due(trainer_.steps_done() + 1, settings_.log_every));
    const StepResult step = trainer_.step(another);
    times_->spend_on_step(step.data_wait_ms / 1e3, step.outcome.updated());
    replicas_.end_step(step);
    memory_.end_step(step.step + 1);
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
    report.ranks = replicas_.take_comparison();
    stall_seconds_ = -1;
    summary.step_durations.add(report.step_ms);
    log.show(report);
    log_buckets(log);
    std::optional<EvaluationReport> evaluated;
    const bool right = step.audit.empty();
    if (right && holds_out && (last || is_due(report.step, settings_.eval_every)) && !stopping()) {
      const WaitFor waiting(options, kBatch);
      evaluated = evaluate(report, last, summary);
      cut_short = !evaluated;
    }
    log.record(report, evaluated, &*times_);
    handle_audit(step, log);
    if (!right) {
      last = false;
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
    if (last || summary.end == RunEnd::kStopped ||
        is_due(trainer_.steps_done(), settings_.checkpoint_every)) {
      checkpoint(log, options);
    }
  }
  trainer_.give_up_next();
  {
    const WaitFor waiting(options, "the checkpoint that is being written");
    const auto begin = Clock::now();
    times_->spend_other();
    finish_save(log);
    spent_on(TimeUse::kCheckpoint);
    save_counts_.stall_seconds += seconds_since(begin);
  }
  if (saver_.is_asynchronous()) summary.saves = save_counts_;
  summary.steps = trainer_.steps_done();
  if (summary.end != RunEnd::kStopped) finish(summary, rule.end_after(summary.steps), options);
  summary.overlap = report_overlap();
  replicas_.announce_end(summary.end);
  const std::string_view how = summary.end == RunEnd::kStopped ? kStopped : kFinished;
  start_.end(how);
  times_->end(summary.steps, how);
  summary.times = times_->so_far();
  summary.told_lost_log = log.told_lost_log();
  log.close();
  return summary;
}

void TrainingRun::checkpoint(RunLog& log, const RunOptions& options) {
  const int64_t step = trainer_.steps_done();
  if (saved_step_ == step || (saver_.is_under_way() && saving_step_ == step)) return;
  const WaitFor waiting(options, "the checkpoint that is being written");
  const Span span(SpanKind::kCheckpoint, "checkpoint");
  const auto start = Clock::now();
  times_->spend_other();
  times_->mark(step);
  if (saver_.is_under_way()) {
    const bool waits = !saver_.has_ended();
    const int64_t before = saving_step_;
    finish_save(log);
    if (waits) {
      const double seconds = seconds_since(start);
      ++save_counts_.waits;
      save_counts_.wait_seconds += seconds;
      log.note(fmt::format("the checkpoint of step {} waited {:.2f} s for that of step {}", step,
                           seconds, before));
    }
  }
  log.sync();  // metrics.jsonl must keep the lines of all steps that the checkpoint contains
  saving_step_ = step;
  replicas_.announce_save(saver_, {.folder = directory_.checkpoints(),
                                   .record = record_of(trainer_, config_text_),
                                   .collect = collect_state(),
                                   .then = [this, step] { after_save(step); }});
  if (!saver_.is_asynchronous()) finish_save(log);
  spent_on(TimeUse::kCheckpoint);
  const double stalled = seconds_since(start);
  stall_seconds_ = std::max(stall_seconds_, 0.0) + stalled;
  save_counts_.stall_seconds += stalled;
}

/// Runs beside training if saves are asynchronous.
void TrainingRun::after_save(int64_t step) {
  if (!name_exists(directory_.first_save())) {
    write_text(directory_.first_save(), JsonLine().add("step", step).text() + "\n");
  }
  save_problems_ = remove_old_checkpoints(directory_.checkpoints(), settings_.retention);
}

void TrainingRun::finish_save(RunLog& log) {
  if (!saver_.is_under_way()) return;
  save_seconds_ = replicas_.announce_end_of_save(saver_);
  save_counts_.stall_seconds += saver_.take_copy_wait();
  saved_step_ = saving_step_;
  ++save_counts_.saves;
  for (const std::string& problem : save_problems_) log.note(problem);
}

void TrainingRun::go_back(RunLog& log) {
  finish_save(log);
  const int64_t next_batch = trainer_.position().batch;
  const SpikeRow row = trainer_.spikes().memory().row;
  const std::filesystem::path newest = newest_checkpoint(directory_.checkpoints());
  restore(trainer_, newest, verify_checkpoint(newest));
  trainer_.set_position({trainer_.steps_done(), next_batch});
  trainer_.spikes().set_row(row);
  replicas_.announce_state(trainer_);
  // Resuming from that checkpoint would come to the same step and roll back again, so it need not
  // be rewritten with the new position.
  saved_step_ = trainer_.steps_done();
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

/// Logs the bucket sizes once, after the step at which they were chosen.
void TrainingRun::log_buckets(RunLog& log) {
  if (trainer_.reducer() == nullptr) return;
  const std::optional<dist::BucketChoice>& choice = trainer_.reducer()->choice();
  if (!choice || std::exchange(logged_buckets_, true)) return;
  log.note(fmt::format("gradients: {}", dist::describe(*choice)));
}

void TrainingRun::show_sample(RunLog& log, const RunOptions& options) {
  const WaitFor waiting(options, "this token of the sample");
  const std::string text =
      replicas_.announce_sample(trainer_, settings_.sample_bytes, settings_.seed, options.stop);
  if (text.empty() || (options.stop && options.stop())) return;
  MetricsWriter samples(directory_.samples());
  samples.write(JsonLine().add("step", trainer_.steps_done()).add("text", text));
  samples.close();
  log.note(
      fmt::format("--- sample after step {}\n{}\n---", trainer_.steps_done(), terminal_text(text)));
}

std::optional<OverlapReport> TrainingRun::report_overlap() {
  if (trainer_.takes_local_steps()) return std::nullopt;  // no gradients are sent
  std::optional<OverlapReport> report = replicas_.announce_overlap(trainer_, name_);
  if (report) {
    write_text(directory_.overlap(), overlap_json(*report) + "\n");
    write_text(directory_.overlap_chart(), overlap_chart(overlap_timeline(*report)));
  }
  return report;
}

bool TrainingRun::is_finished() const {
  if (!nothing_to_train_) return false;
  return restored_weights_ ? holds_model(directory_, *restored_weights_)
                           : holds_model(directory_, saved_step_);
}

/// Reads the state of a sharded model from the ranks.
std::function<Tensor(size_t)> TrainingRun::collect_state() {
  if (!trainer_.is_sharded()) return {};
  return [this](size_t number) { return replicas_.announce_collect(trainer_, number); };
}

void TrainingRun::export_model() {
  if (is_finished()) return;
  const SharedWeights shared = trainer_.with_shared_weights();
  train::export_model(trainer_.task(), directory_, trainer_.steps_done(), collect_state());
}

RunEnd follow_training(const config::RunConfig& config, dist::ProcessGroup& group,
                       const StopRequest& stop, const std::function<void()>& begin,
                       const std::function<void(int64_t step)>& before_step) {
  RunStart::follow(group);
  // The leader broadcasts the weights, so they are not loaded here.
  config::RunConfig built = config;
  built.mutable_model()->set_weights("");
  Trainer trainer =
      Trainer::create(config, build_task(built, share_of_step(config.train(), &group)), &group);
  trainer.set_stop_request(stop);
  Replicas replicas(&group);
  replicas.require_same_model(trainer.task().model());
  replicas.require_same_data(trainer.task());
  if (begin) begin();
  CheckpointSaver saver(config, trainer, replicas.group());
  return replicas.follow(trainer, saver, before_step);
}

}  // namespace lockstep::train
