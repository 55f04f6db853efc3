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
#include "dist/group/failure.h"
#include "nn/adapters/lora.h"
#include "train/build.h"
#include "train/gradient_options.h"
#include "train/report/metrics.h"
#include "train/run/resume.h"
#include "train/run/run_waits.h"
#include "train/run/successor.h"
#include "train/weights/multiplier_files.h"

namespace lockstep::train {

namespace {

NonFinite policy_of(const config::TrainConfig& config) {
  if (config.non_finite() == config::TrainConfig::SKIP) return NonFinite::kSkip;
  if (config.non_finite() == config::TrainConfig::ROLLBACK) return NonFinite::kRollback;
  return NonFinite::kStop;
}

/// The task of this rank. Drops the path of initial weights if a checkpoint replaces them, as the
/// file need not exist then, and if the ranks of a sharded model read them (`read_later`).
std::unique_ptr<Task> task_of(const config::RunConfig& config, const RunDirectory& directory,
                              const dist::ProcessGroup* group) {
  config::RunConfig built = config;
  if (newest_whole(directory.checkpoints()) || is_sharded(config, group)) {
    built.mutable_model()->set_weights("");
  }
  return build_task(built, share_of_step(config.train(), group));
}

/// Says how much of a model is trained, where some is frozen.
std::string note_on_frozen(const nn::Module& model) {
  const int64_t trained = model.trained_parameter_count();
  const int64_t all = model.parameter_count();
  return trained == all ? "" : fmt::format("{} of {} parameters are trained", trained, all);
}

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
  settings.balances = config.parallel().balance() == config::ParallelConfig::SPEED;
  settings.held_out = {.patience = train.early_stopping().patience(),
                       .min_delta = train.early_stopping().min_delta(),
                       .keep_best = config.checkpoint().keep_best()};
  settings.exports_averages =
      train.weight_average().decay() > 0 && train.weight_average().final_model();
  settings.fits_time = config.schedule().fit_time_limit();
  settings.retention = {config.checkpoint().keep_last(), config.checkpoint().keep_every(), {}};
  return settings;
}

TrainingRun::TrainingRun(const config::RunConfig& config, const RunDirectory& directory,
                         const std::string& environment)
    : TrainingRun(config, directory, environment, nullptr) {}

TrainingRun::TrainingRun(const config::RunConfig& config, const RunDirectory& directory,
                         const std::string& environment, std::unique_ptr<Task> task,
                         dist::ProcessGroup* group, ElasticRun* elastic)
    : config_(config),
      directory_(directory),
      elastic_(elastic),
      lock_(carries(elastic) ? nullptr : std::make_unique<RunLock>(directory)),
      start_(directory, group),
      settings_(settings_of(config)),
      name_(config.name()),
      config_text_(config::to_text(config)),
      memory_(config.memory(), device_of(config), directory),
      replicas_(group),
      trainer_(carries(elastic)
                   ? Trainer::create(config, elastic->carried->trainer, group)
                   : Trainer::create(config,
                                     task ? std::move(task) : task_of(config, directory, group),
                                     group)),
      saver_(config, trainer_, replicas_.group()),
      copies_(config, trainer_, replicas_.group()),
      parts_(trainer_, replicas_.group(), elastic),
      guard_(policy_of(config.train()), config.train().non_finite_limit()),
      held_out_(settings_.held_out),
      can_roll_back_(policy_of(config.train()) == NonFinite::kRollback ||
                     trainer_.spikes().rule().action == SpikeAction::kRollback),
      slow_ranks_(config.parallel().leave_out_slower()) {
  LS_CHECK(config.audit().every_steps() == 0 || replicas_.group() != nullptr, ConfigError,
           "[audit] audit.every_steps is {} with one rank: expected several, which compute each "
           "other's micro-batches. Start more, or leave audit out.",
           config.audit().every_steps());
  LS_CHECK(!settings_.held_out.compares() || trainer_.task().holds_out(), ConfigError,
           "[train] {} goes by the held-out loss, but the run holds no data out: expected some, as "
           "data.shards.held_out_tokens. Name it, or leave {} out.",
           settings_.held_out.patience > 0 ? "train.early_stopping" : "checkpoint.keep_best",
           settings_.held_out.patience > 0 ? "early_stopping" : "keep_best");
  if (carries(elastic)) {
    take_carried();
    return;
  }
  const Resumption resumption = resume(trainer_, directory_.checkpoints(), config);
  notes_ = resumption.notes;
  for (std::string& note : trainer_.task().data_notes()) notes_.push_back(std::move(note));
  if (const std::string note = note_on_frozen(trainer_.task().model()); !note.empty()) {
    notes_.push_back(note);
  }
  if (resumption.from) {
    saved_step_ = trainer_.steps_done();
    held_out_.remember(resumption.held_out);
    take_early_end();
    // The weights of the end are none of a checkpoint's if they are averages, or have adapters or
    // multipliers merged into them.
    if (!settings_.exports_averages && nn::adapted_layers(trainer_.task().model()).empty() &&
        !has_multipliers(trainer_.task().model())) {
      restored_weights_ = resumption.weights;
    }
    nothing_to_train_ = settings_.stop.all_steps_done(saved_step_) || held_out_.is_over();
  } else {
    require_no_history(directory_);
    if (!trainer_.has_whole_weights()) trainer_.read_later({config.model().weights(), {}});
  }
  // What a killed process left: its temporary files, and a removal that it had begun.
  remove_stale_partials(directory_.path());
  // The last removal may have been interrupted, too; a run that has its model changes no more.
  if (resumption.from && !is_finished()) {
    for (std::string& problem : remove_old_checkpoints(directory_.checkpoints(), retention())) {
      notes_.push_back(std::move(problem));
    }
  }
  if (nothing_to_train_) {
    lock_->leave_no_trace();
  } else {
    write_text(directory_.config(), config_text_);
    write_text(directory_.environment(), environment);
    start_.begin();
  }
  replicas_.require_same_model(trainer_.task().model());
  replicas_.require_same_data(trainer_.task());
  if (replicas_.group() != nullptr) {
    Successor::announce(*replicas_.group(), directory_, *lock_, trainer_.device());
  }
  replicas_.announce_state(trainer_, copies_);
  tell_held_out();
}

void TrainingRun::take_early_end() {
  const std::optional<ScheduleEnd>& end = trainer_.early_end();
  if (!end) return;
  settings_.stop.steps = end->steps;
  config_text_ = text_of_run(config_, end);
}

void TrainingRun::begin_account(const RunOptions& options) {
  times_.emplace(directory_, recorded_,
                 change_ ? change_->noticed : options.begun.value_or(constructed_));
}

void TrainingRun::spent_on(TimeUse use) {
  if (times_) times_->spend(use);
}

bool TrainingRun::may_begin_next_ahead() const {
  const int64_t done = trainer_.steps_done() + 1;
  return !settings_.stop.all_steps_done(done) && !memory_.wants_whole_steps() &&
         !(trainer_.task().holds_out() && is_due(done, settings_.eval_every)) &&
         !is_due(done, settings_.sample_every) && !is_due(done, settings_.checkpoint_every) &&
         !is_due(done, copies_.every());
}

StepReport TrainingRun::report_of(const StepResult& step) {
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
  if (const CompiledBlocks* const blocks = trainer_.compiled_blocks()) {
    const CompileCounts so_far = blocks->counts();
    report.compiled_passes =
        so_far.recorded + so_far.replayed - compiled_before_.recorded - compiled_before_.replayed;
    report.called_passes = so_far.eager - compiled_before_.eager;
    compiled_before_ = so_far;
  }
  if (trainer_.captured_step() != nullptr) report.replayed = step.replayed;
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
    const WaitFor waiting(options, kWaitForBatch);
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
  summary.ended_early = trainer_.early_end().has_value();
  summary.final_loss = std::numeric_limits<double>::quiet_NaN();
  finish(summary, end_after(summary.steps), options);
  replicas_.announce_end(summary.end);
  return summary;
}

void TrainingRun::checkpoint(RunLog& log, const RunOptions& options) {
  const int64_t step = trainer_.steps_done();
  if (saved_step_ == step || (saver_.is_under_way() && saving_step_ == step)) return;
  const WaitFor waiting(options, kWaitForCheckpoint);
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
  copies_.wait_for_own();
  replicas_.announce_save(saver_,
                          {.folder = directory_.checkpoints(),
                           .record = checkpoint_record(),
                           .collect = collect_state(),
                           .then = [this, step, keep = retention()] { after_save(step, keep); }});
  if (!saver_.is_asynchronous()) finish_save(log);
  spent_on(TimeUse::kCheckpoint);
  const double stalled = seconds_since(start);
  stall_seconds_ = std::max(stall_seconds_, 0.0) + stalled;
  save_counts_.stall_seconds += stalled;
}

CheckpointRecord TrainingRun::checkpoint_record() {
  CheckpointRecord record = record_of(trainer_, config_text_);
  record.manifest.held_out = held_out_.memory();
  return record;
}

/// Runs beside training if saves are asynchronous.
void TrainingRun::after_save(int64_t step, const Retention& retention) {
  save_problems_ = train::after_save(directory_, step, retention);
}

void TrainingRun::finish_save(RunLog& log) {
  if (!saver_.is_under_way()) return;
  save_seconds_ = replicas_.announce_end_of_save(saver_);
  save_counts_.stall_seconds += saver_.take_copy_wait();
  saved_step_ = saving_step_;
  ++save_counts_.saves;
  for (const std::string& problem : save_problems_) log.note(problem);
}

/// Logs the bucket sizes once, after the step at which they were chosen.
void TrainingRun::log_buckets(RunLog& log) {
  if (trainer_.reducer() == nullptr) return;
  const std::optional<dist::BucketChoice>& choice = trainer_.reducer()->choice();
  if (!choice || std::exchange(logged_buckets_, true)) return;
  log.note(fmt::format("gradients: {}", dist::describe(*choice)));
}

void TrainingRun::log_compiled(const StepResult& step, RunLog& log) {
  if (step.replayed && told_of_compiled_.insert("replayed").second) {
    const bool has_update = trainer_.captured_step()->has_update();
    log.note(fmt::format("compile: passes{} of steps are CUDA graphs from step {} on",
                         has_update ? " and updates" : "", step.step + 1));
  }
  for (const std::string& reason : trainer_.compile_reasons()) {
    if (told_of_compiled_.insert(reason).second) log.note("compile: " + reason);
  }
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

RunEnd follow_training(const config::RunConfig& config, dist::ProcessGroup& group,
                       const StopRequest& stop, const std::function<void()>& begin,
                       const std::function<void(int64_t step)>& before_step, ElasticRun* elastic) {
  RunStart::follow(group);
  const bool carries = elastic != nullptr && elastic->carried;
  // The leader broadcasts the weights, so they are not loaded here.
  config::RunConfig built = config;
  built.mutable_model()->set_weights("");
  Trainer trainer =
      carries ? Trainer::create(config, elastic->carried->trainer, &group)
              : Trainer::create(config, build_task(built, share_of_step(config.train(), &group)),
                                &group);
  trainer.set_stop_request(stop);
  Replicas replicas(&group);
  CarriedRun carried;
  std::shared_ptr<Successor> successor;
  if (carries) {
    carried = *std::exchange(elastic->carried, std::nullopt);
  } else {
    replicas.require_same_model(trainer.task().model());
    replicas.require_same_data(trainer.task());
    successor = std::make_shared<Successor>(config, group);
  }
  if (begin) begin();
  CheckpointSaver saver(config, trainer, replicas.group());
  MemoryCopies copies(config, trainer, replicas.group());
  PartGiving giving(trainer, replicas.group(), elastic);
  bool has_state = !carries || carried.steps >= 0;
  try {
    if (carries) {
      successor = std::make_shared<Successor>(config, group);
      replicas.share_carried(trainer, carried);
      has_state = true;
    }
    return replicas.follow(trainer, saver, copies, giving, before_step);
  } catch (const dist::StoppedError&) {
    throw;
  } catch (const DistError& error) {
    std::optional<StepResult> finished;
    has_state = has_state && !replicas.replaces_state();
    // Of the leader that is lost, which may be the one before if it has not told of itself again.
    if (successor) carried.successor = successor;
    const Survivor survivor{.config = config,
                            .state = has_state ? state_told(trainer) : StateTold(),
                            .micro_batch_size = trainer.share().micro_batch_size,
                            .finish_step = [&] { finished = trainer.finish_step(); },
                            .take_lead = [&](int64_t most) { return take_lead(carried, most); }};
    if (meet_again(elastic, survivor, error, carried)) {
      wait_for_threads(saver, copies);
      carried.trainer = trainer.leave();
      if (replicas.last_step()) carried.last = replicas.last_step();
      if (finished) carried.last = finished;
      carried.held_out = replicas.held_out();
      elastic->carried = std::move(carried);
      return RunEnd::kRegrouped;
    }
    if (!successor) throw;
    // Other ranks may be writing their parts of what is under way.
    if (replicas.is_settled() && !saver.is_under_way()) {
      successor->keep_steps_done(trainer, replicas.held_out());
    }
    successor->keep_copies(copies);
    throw;
  } catch (const std::exception& error) {
    replicas.end_with(error);
    throw;
  }
}

}  // namespace lockstep::train
