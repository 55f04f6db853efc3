#include "launcher/train_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "configs/run.pb.h"
#include "core/base/digits.h"
#include "core/base/files/compression.h"
#include "core/base/parallel.h"
#include "core/base/terminal_text.h"
#include "core/device/slow_paths.h"
#include "core/memory/caching_allocator.h"
#include "data/text_data.h"
#include "train/language_task.h"
#include "train/report/progress.h"
#include "train/report/step_line.h"

namespace lockstep::launcher {

namespace {

/// Unit of throughput.
const char* unit_of(const train::Task& task) {
  return task.tokens_per_sample() == 1 ? "samples" : "tokens";
}

std::string summary_text(const train::RunSummary& summary, const train::RunDirectory& directory,
                         const char* unit) {
  std::string text = fmt::format("\nrun        {}\n", directory.path().string());
  const int64_t trained = summary.steps - summary.first_step;
  if (trained == 0 && summary.end == train::RunEnd::kNoProgress) {
    return text + fmt::format(
                      "trained    nothing: training ended early after {} steps before. Raise "
                      "train.early_stopping.patience to go on\n",
                      grouped(summary.steps));
  }
  if (trained == 0) {
    return text + fmt::format(
                      "trained    nothing: all {} steps were done before. Raise train.steps to go "
                      "on{}\n",
                      grouped(summary.steps),
                      summary.ended_early ? ", without schedule.fit_time_limit" : "");
  }
  const auto percentile = [&](double percent) {
    return summary.step_durations.percentile(percent);
  };
  const char* end = summary.end == train::RunEnd::kTimeBudget   ? " (stopped by the time limit)"
                    : summary.end == train::RunEnd::kNoProgress ? " (stopped early)"
                    : summary.ended_early ? " (as many as the time limit allows)"
                                          : "";
  text += fmt::format(
      "trained    {} steps{}, {} {} in {}, {} {}/s, final loss {:.4f}{}\n", grouped(trained),
      summary.first_step > 0 ? fmt::format(" after {}", grouped(summary.first_step)) : "",
      grouped(summary.tokens), unit, train::format_duration(summary.seconds),
      grouped(static_cast<int64_t>(static_cast<double>(summary.tokens) / summary.seconds)), unit,
      summary.final_loss, end);
  text += fmt::format("goodput    {}\n", train::goodput_text(summary.times));
  return text + fmt::format("step time  p50 {:.1f} ms, p90 {:.1f} ms, p99 {:.1f} ms\n",
                            percentile(50), percentile(90), percentile(99));
}

/// As wide as the terminal where standard output is one: what goes on stands below what began.
std::string for_terminal(const std::string& text) {
  constexpr size_t kIndent = 11;
  const auto style = train::ProgressStyle::of(stdout);
  return style.bar ? folded(text, static_cast<size_t>(style.columns), kIndent) : text;
}

std::string overlap_text(const train::OverlapReport& report) {
  std::string text;
  const char* head = "overlap   ";
  for (const std::string& line : train::overlap_summary(report)) {
    text += fmt::format("{} {}\n", std::exchange(head, "          "), line);
  }
  return text + "           overlap.svg shows the step, overlap.json has its numbers\n";
}

std::string saves_text(const train::SaveCounts& saves) {
  std::string text =
      fmt::format("saves      {} beside training, which stood still {:.3f} s for them", saves.saves,
                  saves.stall_seconds);
  if (saves.waits > 0) {
    text += fmt::format("; {} waited {:.3f} s for the one before", saves.waits, saves.wait_seconds);
  }
  return text + "\n";
}

std::string memory_text(Device device) {
  const auto bytes = [](int64_t count) {
    return train::format_bytes(static_cast<uint64_t>(count));
  };
  const auto* caching = dynamic_cast<const CachingAllocator*>(&allocator(device));
  if (caching == nullptr) {
    return fmt::format("memory     {} on loan at the peak, on {}\n",
                       bytes(allocator(device).stats().peak_allocated), to_string(device));
  }
  const DeviceMemoryStats stats = caching->memory_stats();
  return fmt::format("memory     {} on loan at the peak, {} reserved, on {}\n",
                     bytes(stats.allocated_bytes.all.peak), bytes(stats.reserved_bytes.all.peak),
                     to_string(device));
}

/// What this process did the slow way, of the most calls first. Empty if there is none.
std::string slow_paths_text() {
  std::vector<SlowPath> paths = slow_paths();
  std::ranges::stable_sort(paths, std::greater(), &SlowPath::calls);
  std::string text;
  for (const SlowPath& path : paths) {
    text += fmt::format("{} {} ({} calls): {}\n", text.empty() ? "slow      " : "          ",
                        path.what, grouped(path.calls), path.why);
  }
  return text;
}

std::string held_out_text(const train::Evaluation& held_out, const char* unit) {
  std::string text =
      fmt::format("held out   {} {}: loss {:.4f}", grouped(held_out.targets), unit, held_out.loss);
  if (!std::isnan(held_out.accuracy)) {
    text += fmt::format(", {:.2f} % correct", 100 * held_out.accuracy);
  }
  if (held_out.bytes_per_target > 0) {
    text += fmt::format(", {:.3f} bits per byte", held_out.bits_per_byte());
  }
  return text + "\n";
}

/// For byte-level models: what compressors achieve on the same held-out text. Empty if there is no
/// memory for them: the run is finished all the same.
std::string compressors_text(train::Task& task) try {
  const auto* language = dynamic_cast<const train::LanguageTask*>(&task);
  if (language == nullptr) return "";
  const auto* text = dynamic_cast<const train::ByteText*>(&language->source());
  if (text == nullptr) return "";
  const std::span<const std::byte> bytes = text->held_out();
  const auto bits = [&](size_t size) {
    return 8.0 * static_cast<double>(size) / static_cast<double>(bytes.size());
  };
  return fmt::format(
      "           the same {} bytes by gzip -9 {:.3f}, xz -9 {:.3f}, bzip2 -9 {:.3f}\n",
      grouped(std::ssize(bytes)), bits(gzip_size(bytes)), bits(xz_size(bytes)),
      bits(bzip2_size(bytes)));
} catch (const OutOfMemoryError&) {
  return "";
}

}  // namespace

std::string banner(train::TrainingRun& run, const config::RunConfig& config, int ranks) {
  const auto& train = config.train();
  train::Task& task = run.trainer().task();
  std::string text = fmt::format(
      "{}: {} parameters, {} steps of {}{} {}, {}{} thread{}, writing to {}\n", config.name(),
      grouped(task.model().parameter_count()), grouped(train.steps()), train.batch_size(),
      task.tokens_per_sample() == 1 ? "" : fmt::format(" x {}", task.tokens_per_sample()),
      unit_of(task), ranks == 1 ? "" : fmt::format("{} ranks of ", ranks), num_threads(),
      num_threads() == 1 ? "" : "s", run.directory().path().string());
  for (const std::string& note : run.notes()) text += note + "\n";
  return text;
}

std::string run_report(train::TrainingRun& run, const train::RunSummary& summary) {
  train::Task& task = run.trainer().task();
  const char* unit = unit_of(task);
  std::string text = summary_text(summary, run.directory(), unit);
  if (summary.overlap) text += overlap_text(*summary.overlap);
  if (summary.saves && summary.saves->saves > 0) text += saves_text(*summary.saves);
  if (summary.steps > summary.first_step) text += memory_text(run.trainer().device());
  text += slow_paths_text();
  if (summary.held_out.targets > 0) {
    text += held_out_text(summary.held_out, unit) + compressors_text(task);
  }
  return for_terminal(text);
}

std::string sample_report(const std::string& sample, const train::RunDirectory& directory) {
  const std::string folder = directory.path().string();
  const std::string look = fmt::format("look at    {}/metrics.jsonl", folder);
  if (sample.empty()) return look + "\n";
  return fmt::format(
      "sample\n{}\n\n{}", terminal_text(sample),
      for_terminal(fmt::format("{}; more text: lockstep sample {}\n", look, folder)));
}

}  // namespace lockstep::launcher
