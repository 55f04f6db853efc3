#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "configs/annotated_text.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/atomic_file.h"
#include "core/base/check.h"
#include "core/base/compression.h"
#include "core/base/digits.h"
#include "core/base/duration.h"
#include "core/base/parallel.h"
#include "core/memory/caching_allocator.h"
#include "data/text_data.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "launcher/exit_code.h"
#include "launcher/load_option.h"
#include "launcher/ranks.h"
#include "launcher/stop_signals.h"
#include "launcher/verbs.h"
#include "train/build.h"
#include "train/language_task.h"
#include "train/replicas.h"
#include "train/report/allocation_recorder.h"
#include "train/report/environment.h"
#include "train/report/progress.h"
#include "train/report/step_line.h"
#include "train/training_run.h"

namespace lockstep::launcher {

namespace {

struct TrainOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::vector<std::string> plugins;
  int64_t steps = 0;
  bool overfit_one_batch = false;
  std::string run_directory;
  bool fresh = false;
  std::string time_limit;
  std::string log_format = "text";
  std::string allocations_file;
  std::vector<std::string> command_line;
};

/// Unit of throughput.
const char* unit_of(const train::Task& task) {
  return task.tokens_per_sample() == 1 ? "samples" : "tokens";
}

void print_banner(train::TrainingRun& run, const config::RunConfig& config, int ranks) {
  const auto& train = config.train();
  train::Task& task = run.trainer().task();
  fmt::print(stderr, "{}: {} parameters, {} steps of {}{} {}, {}{} thread{}, writing to {}\n",
             config.name(), grouped(task.model().parameter_count()), grouped(train.steps()),
             train.batch_size(),
             task.tokens_per_sample() == 1 ? "" : fmt::format(" x {}", task.tokens_per_sample()),
             unit_of(task), ranks == 1 ? "" : fmt::format("{} ranks of ", ranks), num_threads(),
             num_threads() == 1 ? "" : "s", run.directory().path().string());
  for (const std::string& note : run.notes()) fmt::print(stderr, "{}\n", note);
}

void print_summary(const train::RunSummary& summary, const train::RunDirectory& directory,
                   const char* unit) {
  fmt::print("\nrun        {}\n", directory.path().string());
  const int64_t trained = summary.steps - summary.first_step;
  if (trained == 0) {
    fmt::print("trained    nothing: all {} steps were done before. Raise train.steps to go on\n",
               grouped(summary.steps));
    return;
  }
  const auto percentile = [&](double percent) {
    return summary.step_durations.percentile(percent);
  };
  const char* end = summary.end == train::RunEnd::kTimeBudget ? " (stopped by the time limit)" : "";
  fmt::print("trained    {} steps{}, {} {} in {}, {} {}/s, final loss {:.4f}{}\n", grouped(trained),
             summary.first_step > 0 ? fmt::format(" after {}", grouped(summary.first_step)) : "",
             grouped(summary.tokens), unit, train::format_duration(summary.seconds),
             grouped(static_cast<int64_t>(static_cast<double>(summary.tokens) / summary.seconds)),
             unit, summary.final_loss, end);
  fmt::print("step time  p50 {:.1f} ms, p90 {:.1f} ms, p99 {:.1f} ms\n", percentile(50),
             percentile(90), percentile(99));
}

void print_overlap(const train::OverlapReport& report) {
  const char* head = "overlap   ";
  for (const std::string& line : train::overlap_summary(report)) {
    fmt::print("{} {}\n", std::exchange(head, "          "), line);
  }
  fmt::print("           overlap.svg shows the step, overlap.json has its numbers\n");
}

void print_memory(Device device) {
  const DeviceMemoryStats stats = caching_allocator(device).memory_stats();
  const auto bytes = [](const PoolStat& stat) {
    return train::format_bytes(static_cast<uint64_t>(stat.all.peak));
  };
  fmt::print("memory     {} on loan at the peak, {} reserved, on {}\n",
             bytes(stats.allocated_bytes), bytes(stats.reserved_bytes), to_string(device));
}

void print_held_out(const train::Evaluation& held_out, const char* unit) {
  fmt::print("held out   {} {}: loss {:.4f}", grouped(held_out.targets), unit, held_out.loss);
  if (!std::isnan(held_out.accuracy)) fmt::print(", {:.2f} % correct", 100 * held_out.accuracy);
  if (held_out.bytes_per_target > 0) fmt::print(", {:.3f} bits per byte", held_out.bits_per_byte());
  fmt::print("\n");
}

/// For byte-level models, prints what compressors achieve on the same held-out text.
void print_compressors(train::Task& task) {
  const auto* language = dynamic_cast<const train::LanguageTask*>(&task);
  if (language == nullptr) return;
  const auto* text = dynamic_cast<const train::ByteText*>(&language->source());
  if (text == nullptr) return;
  const std::span<const std::byte> bytes = text->held_out();
  const auto bits = [&](size_t size) {
    return 8.0 * static_cast<double>(size) / static_cast<double>(bytes.size());
  };
  fmt::print("           the same {} bytes by gzip -9 {:.3f}, xz -9 {:.3f}, bzip2 -9 {:.3f}\n",
             grouped(std::ssize(bytes)), bits(gzip_size(bytes)), bits(xz_size(bytes)),
             bits(bzip2_size(bytes)));
}

/// Returns the shell command that resumes the run.
std::string command_to_continue(const TrainOptions& options, const train::RunDirectory& directory) {
  std::string command = "lockstep train";
  for (const std::string& file : options.files) command += " " + file;
  for (const std::string& file : options.plugins) command += " --load " + file;
  for (const std::string& value : options.overrides) command += fmt::format(" --set '{}'", value);
  return fmt::format("{} --run-dir {}", command, directory.path().string());
}

train::RunDirectory open_directory(const TrainOptions& options, const config::RunConfig& config) {
  if (options.run_directory.empty()) return train::RunDirectory::create_new(config.name());
  using Existing = train::RunDirectory::Existing;
  return train::RunDirectory::create_at(options.run_directory,
                                        options.fresh ? Existing::kRefuse : Existing::kContinue);
}

/// Returns all set fields, a line each, so that a difference between ranks is reported with its
/// path.
std::string lines_of(const config::RunConfig& config) {
  std::string text;
  for (const config::Difference& field : config::differences(config, {})) {
    text += fmt::format("{}: {}\n", field.path, field.a);
  }
  return text;
}

/// Runs the verb; throws ExitStatus if the run was stopped.
void run_train(TrainOptions options) {
  if (options.steps != 0) {
    options.overrides.push_back(fmt::format("train.steps={}", options.steps));
  }
  const std::vector<Plugin> plugins = load_plugins(options.plugins);
  if (options.overfit_one_batch) options.overrides.push_back("train.overfit_one_batch=true");
  config::Origins origins;
  const config::RunConfig config = load_config(options.files, options.overrides, &origins);
  const StopSignals signals;
  const auto stop = [&] { return signals.received() != 0; };
  // Without --run-dir the directory is not known to all ranks yet, so there is no flight folder.
  const std::filesystem::path run_directory = options.run_directory;
  Ranks ranks = join_ranks(run_directory.empty() ? run_directory : run_directory / "flight");
  assign_devices(ranks, config);
  set_time_limit(ranks, config.parallel().timeout_seconds());
  set_rank_threads(ranks, config.threads());
  train::Replicas(ranks.group.get()).require_same("config", lines_of(config));
  if (!ranks.leads()) return train::follow_training(config, *ranks.group, stop);
  const std::string environment = train::environment_json({.command_line = options.command_line,
                                                           .version = LOCKSTEP_VERSION,
                                                           .threads = num_threads(),
                                                           .device = train::device_of(config),
                                                           .libraries = {}});
  // Created before the model, so that its parameters are recorded too.
  std::optional<train::AllocationRecorder> recorder;
  if (!options.allocations_file.empty()) {
    LS_CHECK(config.memory().snapshot_step() == 0, ConfigError,
             "[train] --record-allocations and memory.snapshot_step need the allocator's one "
             "history: expected one of them, got both. Record in a run of its own.");
    recorder.emplace(caching_allocator(parse_device(config.device())));
  }
  train::TrainingRun run(config, open_directory(options, config), environment, nullptr,
                         ranks.group.get());
  const train::RunDirectory& directory = run.directory();
  if (!run.has_nothing_to_train()) {
    write_text(directory.path() / "config_origins.txtpb", config::annotated_text(config, origins));
  }
  print_banner(run, config, ranks.environment.size);
  const train::LogFormat format = train::parse_log_format(options.log_format);
  // Other formats are for programs, which expect nothing else on standard output.
  const bool is_text = format == train::LogFormat::kText;
  const train::RunSummary summary = run.run({.terminal = is_text ? stderr : stdout,
                                             .format = format,
                                             .stop = stop,
                                             .time_limit = parse_duration(options.time_limit),
                                             .before_step = [&](int64_t step) {
                                               if (recorder) recorder->mark_step(step);
                                             }});
  if (recorder) recorder->write(options.allocations_file, config.name());
  if (summary.end == train::RunEnd::kStopped) {
    fmt::print(stderr, "stopped after step {}; everything is saved. To go on:\n  {}\n",
               summary.steps, command_to_continue(options, directory));
    throw ExitStatus(kStopped);
  }
  if (!is_text) return;
  print_summary(summary, directory, unit_of(run.trainer().task()));
  if (summary.overlap) print_overlap(*summary.overlap);
  if (summary.steps > summary.first_step) print_memory(run.trainer().device());
  if (summary.held_out.targets > 0) {
    print_held_out(summary.held_out, unit_of(run.trainer().task()));
    print_compressors(run.trainer().task());
  }
  const std::string sample =
      run.trainer().task().sample_text(config.train().sample_bytes(), config.seed());
  if (!sample.empty()) {
    fmt::print("sample\n{}\n\n", sample);
  }
  fmt::print("look at    {}/metrics.jsonl", directory.path().string());
  if (!sample.empty()) fmt::print("; more text: lockstep sample {}", directory.path().string());
  fmt::print("\n");
}

}  // namespace

void add_train(const Verb& app, std::vector<std::string> command_line) {
  auto options = std::make_shared<TrainOptions>();
  options->command_line = std::move(command_line);
  const Verb verb = app.verb("train", "Train the model that a config describes");
  add_config_options(verb, options->files, options->overrides);
  add_load_option(verb, options->plugins);
  verb.option("--steps", options->steps, "Train this many steps (train.steps)").positive();
  verb.option("--log-format", options->log_format,
              "How steps are shown (default text); other formats go to standard output")
      .one_of({"text", "json", "nanogpt", "llmc"});
  const Option directory =
      verb.option("--run-dir", options->run_directory,
                  "Folder for everything the run writes (default: runs/NAME-DATE-TIME). One "
                  "that holds checkpoints is gone on with");
  verb.flag("--fresh", options->fresh, "Refuse a --run-dir that is not empty").needs(directory);
  verb.option("--time-limit", options->time_limit,
              "Save and stop in time (seconds, or H:MM:SS); exit status 75: start again to go "
              "on")
      .check([](const std::string& text) {
        return parse_duration(text) > 0 ? "" : "expected seconds or H:MM:SS, above 0";
      });
  verb.option("--record-allocations", options->allocations_file,
              "Write the requests for the device's memory to this file, for `lockstep bench "
              "allocator --trace`");
  verb.flag("--overfit-one-batch", options->overfit_one_batch,
            "Train on the first batch alone (train.overfit_one_batch): a model that learns at "
            "all drives its loss towards 0");
  verb.runs([options] { run_train(*options); });
}

}  // namespace lockstep::launcher
