#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::train {

inline constexpr std::string_view kFinished = "finished";
inline constexpr std::string_view kStopped = "stopped";

/// The last start that `starts.jsonl` lists.
struct LastStart {
  std::string id;  ///< FlightLog::start of its ranks
  int ranks = 0;
  std::string end;  ///< kFinished, kStopped, or empty: it failed, was killed or goes on

  int64_t told_ns = 0;  ///< time of its last line on the system clock, as FlightLog::written_ns

  bool ended_well() const { return !end.empty(); }
};
/// Finds it in the text of that file. Lines that a killed process left incomplete, and others that
/// are none of the file's, are skipped; nothing if no line begins a start.
std::optional<LastStart> parse_last_start(const std::string& text);

}  // namespace lockstep::train
