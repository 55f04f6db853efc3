#include "launcher/launch/restart_log.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "core/base/error.h"
#include "core/base/json_line.h"
#include "dist/rendezvous/rank_list.h"
#include "train/report/metrics.h"
#include "train/report/metrics_history.h"
#include "train/report/run_directory.h"
#include "train/run/checkpoint.h"

namespace lockstep::launcher {
namespace {

std::string time_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S%z}", fmt::localtime(std::time(nullptr)));
}

void add_checkpoints(RunProgress& progress, const std::filesystem::path& folder) {
  try {
    for (const train::CheckpointEntry& entry : train::list_checkpoints(folder)) {
      if (!entry.complete) continue;
      progress.saved = std::max(progress.saved, entry.step);
      if (!entry.after_error) progress.saved_in_time = std::max(progress.saved_in_time, entry.step);
    }
  } catch (const Error&) {
    // It cannot be listed: no progress can be seen.
  }
}

}  // namespace

RunProgress read_progress(const std::filesystem::path& run_directory) {
  RunProgress progress{.steps = train::last_step(run_directory / "metrics.jsonl")};
  add_checkpoints(progress, run_directory / "checkpoints");
  return progress;
}

bool writes_checkpoint(const std::filesystem::path& run_directory,
                       std::filesystem::file_time_type since) {
  try {
    const auto partial = train::partial_checkpoints(run_directory / "checkpoints");
    return std::ranges::any_of(partial, [&](const std::filesystem::path& folder) {
      std::error_code gone;
      const auto changed = std::filesystem::last_write_time(folder, gone);
      return !gone && changed >= since;
    });
  } catch (const Error&) {
    return false;  // the folder cannot be listed
  }
}

RestartLog::RestartLog(std::filesystem::path run_directory) : folder_(std::move(run_directory)) {}

RestartLog::~RestartLog() {
  if (waiting_) write(*waiting_, std::nullopt);
}

void RestartLog::note(const LostStart& lost) {
  if (folder_.empty()) return;
  if (waiting_) write(*waiting_, std::nullopt);
  waiting_.reset();
  const Waiting line{lost, time_now()};
  if (lost.again) {
    waiting_ = line;
  } else {
    write(line, std::nullopt);
  }
}

std::optional<double> RestartLog::look() {
  if (!waiting_) return std::nullopt;
  const RunProgress& before = waiting_->lost.progress;
  const int64_t step = train::last_step(folder_ / "metrics.jsonl");
  // Until the restarted run has cut them off, the file holds the steps that were lost.
  if (step <= before.saved || step == before.steps) return std::nullopt;
  const double seconds = std::chrono::duration<double>(Clock::now() - waiting_->lost.at).count();
  write(*waiting_, seconds);
  waiting_.reset();
  return seconds;
}

void RestartLog::finish() {
  if (waiting_ && !look()) {
    write(*waiting_, std::nullopt);
    waiting_.reset();
  }
}

void RestartLog::write(const Waiting& waiting, std::optional<double> seconds) {
  const LostStart& lost = waiting.lost;
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder_, ignored)) return;
  JsonLine line;
  line.add("at", waiting.at).add("cause", lost.cause);
  if (lost.failure.rank >= 0) line.add("rank", lost.failure.rank);
  if (lost.lost.size() > 1) line.add("lost", dist::rank_list(lost.lost));
  if (!lost.host.empty()) line.add("host", lost.host);
  line.add("status", lost.status).add("ranks", lost.ranks).add("step_lost", lost.progress.steps);
  if (lost.again) {
    line.add("resumed_from", lost.progress.saved)
        .add("steps_again", std::max<int64_t>(0, lost.progress.steps - lost.progress.saved))
        .add("restart", lost.restart);
    if (seconds) {
      line.add("training_again_s", *seconds);
    } else {
      line.add_null("training_again_s");
    }
  }
  try {
    train::MetricsWriter file(train::RunDirectory::open(folder_).restarts());
    file.write(line);
    file.close();
  } catch (const Error&) {
    // The run is on another host's disk, or the disk is full.
  }
}

}  // namespace lockstep::launcher
