#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/device.h"
#include "launcher/ranks.h"
#include "profile/machine_peaks.h"
#include "profile/profiler.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::launcher {

/// Profiles a rank's steps as the config's `profile` says, and writes a trace of each cycle to rank
/// 0's `folder`: trace-RANK.json.gz, trace-RANK.cycle-2.json.gz, ... Does nothing without
/// `profile.active`. Not thread-safe.
class RunProfile {
 public:
  /// Collective where something is profiled: the ranks agree on the folder and compare their
  /// clocks.
  RunProfile(const config::RunConfig& config, const Ranks& ranks, std::filesystem::path folder);

  void begin_step(int64_t step);
  /// Returns run(). Whatever was recorded of the last cycle is written, also if `run` throws.
  template <class F>
  auto around(F&& run) {
    const auto result = [&] {
      try {
        return run();
      } catch (...) {
        end_after_error();
        throw;
      }
    }();
    end();
    return result;
  }
  /// After the run: measures the device's rates and writes them beside the traces.
  void measure_peaks();
  /// The table of the last cycle and where the traces are. Empty where nothing was asked for.
  std::string report() const;

 private:
  void end();
  void end_after_error() noexcept;
  void write(profile::Profile recorded);

  profile::Schedule schedule_;
  const Ranks& ranks_;
  profile::ProfileRank rank_;
  std::filesystem::path folder_;
  Device device_;
  std::optional<profile::Profile> last_;
  profile::MachinePeaks peaks_;
  int cycles_ = 0;
  std::filesystem::path file_;                   ///< of the last cycle
  std::unique_ptr<profile::Profiler> profiler_;  ///< null: nothing is profiled
};

/// The fields of a config that `--profile TEXT` sets, as --set takes them. Throws ConfigError.
std::vector<std::string> profile_overrides(const std::string& text);
/// What is wrong with the text, or "".
std::string problem_of_schedule(const std::string& text);

}  // namespace lockstep::launcher
