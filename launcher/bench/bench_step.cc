#include "launcher/bench/bench_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "configs/run.pb.h"
#include "core/base/json_line.h"
#include "core/base/parallel.h"
#include "core/device/slow_paths.h"
#include "core/tensor/allocator.h"
#include "launcher/bench/operator_profile.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "profile/call_time.h"
#include "profile/machine_peaks.h"
#include "train/report/step_line.h"
#include "train/trainer.h"

namespace lockstep::launcher {

namespace {

struct StepOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string precision;  ///< empty: the config's
  int threads = 0;
  int64_t steps = 0;
  bool profile = false;
  bool json = false;
};

struct TimedSteps {
  double median_ms = 0;
  double min_ms = 0;
  int64_t driver_calls = 0;  ///< memory calls of the allocator to the driver, in all timed steps
  int64_t calls_on_cpu = 0;  ///< operator calls that fell back to the cpu, in all timed steps
  int64_t replayed = 0;      ///< steps that were CUDA graphs
  double loss = 0;           ///< loss of the last step
};

/// Three steps warm caches and the allocator up, or as many more as CUDA graphs wait for; then the
/// config's steps are timed one by one, as part of a run.
TimedSteps time_steps(train::Trainer& trainer, int64_t steps) {
  TimedSteps result;
  const auto is_warm = [&](int steps) { return steps >= 3 && !trainer.may_capture(); };
  for (int i = 0; !is_warm(i) && i < 200; ++i) trainer.step(true);
  const Allocator& memory = allocator(trainer.device());
  result.driver_calls = -memory.stats().system_calls;
  result.calls_on_cpu = -profile::all_cpu_fallbacks();
  std::vector<double> times;
  for (int64_t i = 0; i < steps; ++i) {
    const train::StepResult step = trainer.step(i + 1 < steps);
    times.push_back(step.seconds * 1e3);
    result.loss = step.loss;
    result.replayed += step.replayed ? 1 : 0;
  }
  result.driver_calls += memory.stats().system_calls;
  result.calls_on_cpu += profile::all_cpu_fallbacks();
  std::ranges::sort(times);
  result.median_ms = times[times.size() / 2];
  result.min_ms = times.front();
  return result;
}

/// Runs the steps again and prints the time of each operator. No step begins ahead of the one
/// before, so that a device's times are those of one step.
void print_profile(train::Trainer& trainer, int64_t steps, bool json) {
  trainer.give_up_next();
  const profile::MachinePeaks peaks = profile::measure_peaks(trainer.device());
  trainer.step();  // measure_peaks has emptied the caches
  OperatorProfile profile(trainer.device());
  double seconds = 0;
  {
    const ModeGuard on(profile);
    for (int64_t i = 0; i < steps; ++i) seconds += trainer.step().seconds;
  }
  const std::string text =
      json ? profile_json(profile.costs(), peaks, steps)
           : profile_table(profile.costs(), peaks, steps, seconds / static_cast<double>(steps));
  fmt::print("{}", text);
}

void run_step(const StepOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  if (!options.precision.empty()) overrides.push_back("precision=" + options.precision);
  if (options.threads > 0) overrides.push_back(fmt::format("threads={}", options.threads));
  if (options.steps > 0) overrides.push_back(fmt::format("train.steps={}", options.steps));
  const std::vector<std::string> files = {options.file};
  const config::RunConfig config = load_config(files, overrides);
  const std::string precision = config::Precision_Name(config.precision());
  train::Trainer trainer = train::Trainer::create(config);
  const TimedSteps times = time_steps(trainer, config.train().steps());

  const auto tokens =
      static_cast<double>(trainer.samples_per_batch() * trainer.task().tokens_per_sample());
  const double flops = trainer.task().flops_per_token() * tokens;
  const double seconds = times.median_ms / 1e3;
  const MemoryStats memory = allocator(trainer.device()).stats();
  const double mfu = train::model_flops_used(trainer.task().flops_per_token(), tokens / seconds,
                                             config.train().peak_tflops());
  if (options.json) {
    JsonLine line;
    line.add("config", config.name())
        .add("precision", precision)
        .add("threads", num_threads())
        .add("median_ms", times.median_ms)
        .add("min_ms", times.min_ms)
        .add("tokens_per_s", tokens / seconds)
        .add("gflops", flops / seconds / 1e9)
        .add("peak_memory_bytes", memory.peak_allocated)
        .add("reserved_bytes", memory.reserved)
        .add("driver_calls", times.driver_calls)
        .add("calls_on_cpu", times.calls_on_cpu)
        .add("slow_paths", std::ssize(slow_paths()))
        .add("loss", times.loss);
    if (trainer.captured_step() != nullptr) line.add("replayed", times.replayed);
    if (mfu >= 0) line.add("mfu", mfu);
    fmt::print("{}\n", line.text());
  } else {
    fmt::print(
        "{:<12} {:>4}  {} threads  median {:8.2f} ms  min {:8.2f} ms  {:>9.0f} tokens/s  {:6.1f} "
        "GFLOP/s{}  peak {:.0f} MiB\n",
        config.name(), precision, num_threads(), times.median_ms, times.min_ms, tokens / seconds,
        flops / seconds / 1e9, mfu >= 0 ? fmt::format("  {:.1f}% MFU", 100 * mfu) : "",
        static_cast<double>(memory.peak_allocated) / 1048576.0);
  }
  for (const std::string& reason : trainer.compile_reasons()) {
    fmt::print(stderr, "note: compile: {}\n", reason);
  }
  if (options.profile) print_profile(trainer, config.train().steps(), options.json);
}

}  // namespace

void add_bench_step(const Verb& bench) {
  auto options = std::make_shared<StepOptions>();
  const Verb step = bench.verb("step", "Time one training step of a config");
  step.option("config", options->file, "Config file (.txtpb)").required();
  step.option("--set", options->overrides, "Override one field: train.batch_size=8")
      .one_value_each();
  step.option("--precision", options->precision, "Arithmetic (default: the config's)");
  step.option("--threads", options->threads, "Kernel threads (default: the config's)").positive();
  step.option("--steps", options->steps, "Timed steps (default: train.steps)").positive();
  step.flag("--profile", options->profile,
            "Then run the steps again and show where the time goes, operator by operator");
  step.flag("--json", options->json, "One JSON object instead of a line of text");
  step.runs([options] { run_step(*options); });
}

}  // namespace lockstep::launcher
