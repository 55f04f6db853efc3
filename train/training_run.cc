#include "train/training_run.h"

#include <chrono>
#include <optional>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/allocator.h"
#include "train/atomic_file.h"
#include "train/run_log.h"
#include "train/tokenizer.h"
#include "train/weights.h"

namespace lockstep::train {

namespace {

StepReport report_of(const StepResult& step, double flops_per_token, double peak_tflops) {
  StepReport report;
  report.step = step.step + 1;
  report.loss = step.loss;
  report.grad_norm = step.grad_norm;
  report.learning_rate = step.learning_rate;
  report.step_ms = step.seconds * 1e3;
  report.tokens_per_s = static_cast<double>(step.tokens) / step.seconds;
  report.memory_bytes = static_cast<uint64_t>(allocator(kCPU).stats().peak_allocated);
  report.mfu = model_flops_used(flops_per_token, report.tokens_per_s, peak_tflops);
  return report;
}

EvaluationReport report_of(const Evaluation& evaluation, const StepReport& step, bool sampled) {
  return {.step = step.step,
          .train_loss = step.loss,
          .loss = evaluation.loss,
          .bits_per_byte = evaluation.bits_per_byte(),
          .sampled = sampled};
}

}  // namespace

TrainingRun::TrainingRun(const config::RunConfig& config, const RunDirectory& directory,
                         const std::string& environment)
    : directory_(directory),
      trainer_(config),
      steps_(config.train().steps()),
      log_every_(config.train().log_every()),
      eval_every_(config.train().eval_every()),
      eval_batches_(config.train().eval_batches()),
      time_limit_(config.train().time_limit_seconds()),
      peak_tflops_(config.train().peak_tflops()) {
  write_text(directory_.config(), config::to_text(config));
  write_text(directory_.environment(), environment);
}

RunSummary TrainingRun::run(std::FILE* terminal, LogFormat format) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  RunLog log(directory_, terminal,
             {.total_steps = steps_, .log_every = log_every_, .format = format});
  const bool holds_out = trainer_.source().validation_windows(1) > 0;
  const double flops_per_token =
      nn::training_flops_per_token(trainer_.model(), trainer_.model().context_length());
  RunSummary summary;
  bool last = false;
  while (!last) {
    const StepResult step = trainer_.step();
    summary.steps = trainer_.steps_done();
    summary.tokens += step.tokens;
    summary.seconds += step.seconds;
    summary.final_loss = step.loss;
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    summary.stopped_by_time = time_limit_ > 0 && elapsed >= time_limit_ && summary.steps < steps_;
    last = summary.steps == steps_ || summary.stopped_by_time;

    const StepReport report = report_of(step, flops_per_token, peak_tflops_);
    summary.step_times.add(report.step_ms);
    log.show(report);
    std::optional<EvaluationReport> evaluated;
    if (holds_out && (last || (eval_every_ > 0 && summary.steps % eval_every_ == 0))) {
      const Evaluation evaluation = trainer_.evaluate(last ? 0 : eval_batches_);
      evaluated = report_of(evaluation, report, !last);
      if (last) summary.held_out = evaluation;
    }
    log.record(report, evaluated);
  }
  log.close();
  save();
  return summary;
}

void TrainingRun::save() {
  save_weights(trainer_.model(), directory_.weights());
  write_text(directory_.model_config(), trainer_.model().hugging_face_config());
  const Tokenizer* tokenizer = trainer_.source().tokenizer();
  if (tokenizer != nullptr) tokenizer->save(directory_.path());
}

}  // namespace lockstep::train
