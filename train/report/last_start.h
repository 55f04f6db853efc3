#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

inline constexpr std::string_view kFinished = "finished";
inline constexpr std::string_view kStopped = "stopped";

/// The last start that `starts.jsonl` lists (train/report/run_start.h).
struct LastStart {
  std::string id;   ///< FlightLog::start of its ranks
  int ranks = 0;    ///< at least 1
  std::string end;  ///< kFinished, kStopped, or empty: it failed, was killed or goes on

  std::vector<int> hosts;    ///< by rank: the number of its host; empty: all are on one
  bool is_as_before = true;  ///< every start before it had as many ranks, on hosts divided alike

  int64_t told_ns = 0;  ///< time of its last line on the system clock, as FlightLog::written_ns

  bool ended_well() const { return !end.empty(); }
};

/// Reads the text of `starts.jsonl`. Lines that RunStart did not write are skipped, such as those
/// that a killed process left incomplete. Returns nothing if no start is left.
std::optional<LastStart> parse_last_start(const std::string& text);
/// Reads the file in a run directory. Returns nothing for a folder without it, such as a run of one
/// rank.
std::optional<LastStart> read_last_start(const std::filesystem::path& directory);

}  // namespace lockstep::train
