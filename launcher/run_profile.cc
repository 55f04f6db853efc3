#include "launcher/run_profile.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/log_text.h"
#include "core/cuda/nvtx.h"
#include "dist/group/agreement.h"
#include "launcher/collective_spans.h"
#include "launcher/rank_clocks.h"
#include "profile/chrome_trace.h"
#include "profile/table.h"

namespace lockstep::launcher {

namespace {

/// Bytes of names, modules and shapes for which a thread has room for each of its spans.
constexpr uint32_t kTextOfSpan = 256;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

profile::ProfilerOptions options_of(const config::ProfileConfig& config) {
  profile::ProfilerOptions options;
  options.schedule = {config.wait(), config.warmup(), config.active(), config.repeat()};
  options.limits.spans = static_cast<uint32_t>(config.buffer_spans());
  options.limits.text = options.limits.spans * kTextOfSpan;
  options.limits.threads = static_cast<uint32_t>(config.threads());
  return options;
}

/// Runs `write`. The run is worth more than its profile, so that an error is only told.
template <class F>
void unless_it_fails(const F& write) {
  try {
    write();
  } catch (const std::exception& error) {
    (void)write_log(stderr, fmt::format("[profile] a file is missing: {}\n", error.what()));
  }
}

}  // namespace

RunProfile::RunProfile(const config::RunConfig& config, const Ranks& ranks,
                       std::filesystem::path folder)
    : ranks_(ranks), folder_(std::move(folder)), device_(parse_device(config.device())) {
  if (config.profile().active() == 0) return;
  if (config.profile().nvtx()) {
    const SpanMirror* const mirror = cuda::nvtx_mirror();
    LS_CHECK(mirror != nullptr, ConfigError,
             "[profile] profile.nvtx is true, but this build has no NVTX: expected a build where "
             "the CUDA toolkit is found. Leave it out, or build again.");
    set_span_mirror(mirror);
  }
  profile::ProfilerOptions options = options_of(config.profile());
  options.device = device_;
  schedule_ = options.schedule;
  rank_ = {.rank = ranks.environment.rank, .size = ranks.environment.size, .host = host_name()};
  if (ranks.group != nullptr) {
    rank_.backend = ranks.group->backend();
    folder_ = dist::all_gather_texts(*ranks.group, folder_.string()).front();
    rank_.clock_offset_ns = clock_offset_ns(*ranks.group);
  }
  profiler_ = std::make_unique<profile::Profiler>(
      options, [this](profile::Profile recorded) { write(std::move(recorded)); });
}

void RunProfile::begin_step(int64_t step) {
  if (profiler_ != nullptr) profiler_->begin_step(step);
}

void RunProfile::end() {
  if (profiler_ != nullptr) profiler_->end();
}

void RunProfile::end_after_error() noexcept {
  try {
    end();
  } catch (const std::exception&) {
    // The run's own error is the one to tell.
  }
}

void RunProfile::write(profile::Profile recorded) {
  recorded.rank = rank_;
  if (ranks_.communicator != nullptr) add_collectives(recorded, ranks_.communicator->recorder());
  ++cycles_;
  const std::string cycle = cycles_ == 1 ? "" : fmt::format(".cycle-{}", cycles_);
  file_ = folder_ / fmt::format("trace-{}{}.json.gz", rank_.rank, cycle);
  unless_it_fails([&] {
    std::filesystem::create_directories(folder_);
    profile::write_trace(file_, recorded);
  });
  last_ = std::move(recorded);
}

void RunProfile::measure_peaks() {
  if (!last_) return;
  peaks_ = profile::measure_peaks(device_);
  unless_it_fails([&] { profile::write_peaks(folder_ / "machine.json", peaks_); });
}

std::string RunProfile::report() const {
  if (profiler_ == nullptr) return "";
  if (!last_) {
    return fmt::format(
        "\nprofile    nothing: the run made {} steps, and the schedule {} records step {} first\n",
        profiler_->steps(), to_string(schedule_), schedule_.wait + schedule_.warmup + 1);
  }
  return fmt::format(
             "\nprofile    {}: open it in https://ui.perfetto.dev; `lockstep profile {}` shows "
             "more\n\n",
             file_.string(), folder_.parent_path().string()) +
         profile::table_text(*last_, peaks_, {}) +
         (last_->no_device_times.empty()
              ? ""
              : fmt::format("Times are the host's: what {} does is not recorded, since {}.\n",
                            to_string(device_), last_->no_device_times));
}

std::vector<std::string> profile_overrides(const std::string& text) {
  const profile::Schedule schedule = profile::parse_schedule(text);
  // What the text leaves out is the config's, except that something is to be recorded.
  std::vector<std::string> fields = {fmt::format("profile.active={}", schedule.active)};
  if (text.find("wait=") != text.npos)
    fields.push_back(fmt::format("profile.wait={}", schedule.wait));
  if (text.find("warmup=") != text.npos) {
    fields.push_back(fmt::format("profile.warmup={}", schedule.warmup));
  }
  if (text.find("repeat=") != text.npos) {
    fields.push_back(fmt::format("profile.repeat={}", schedule.repeat));
  }
  return fields;
}

std::string problem_of_schedule(const std::string& text) {
  try {
    (void)profile::parse_schedule(text);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

}  // namespace lockstep::launcher
