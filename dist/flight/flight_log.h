#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "dist/flight/flight_recorder.h"

namespace lockstep::dist {

/// Contents of a file written by `FlightRecorder::write`.
struct FlightLog {
  int rank = 0;
  int world_size = 1;
  /// Identifies the start of the job: a run directory sees several, and logs of different ones
  /// must not be analysed together. Equal on all ranks of a start; empty in logs of versions that
  /// did not write it.
  std::string start;
  std::string host;
  int64_t process = 0;     ///< process id
  std::string reason;      ///< why it was written
  int64_t written_ns = 0;  ///< time of writing on the system clock
  uint64_t recorded = 0;   ///< number of operations so far; `records` are the last of them
  std::vector<FlightGroup> groups;
  std::vector<FlightRecord> records;  ///< oldest first

  friend bool operator==(const FlightLog&, const FlightLog&) = default;
};

/// Formats a log as JSON. Bytes of names and reasons that are not UTF-8 become U+FFFD.
std::string format_flight_log(const FlightLog& log);
/// Inverse of format_flight_log. Throws DataError, starting with `origin`, for any other text.
FlightLog parse_flight_log(std::string_view text, std::string_view origin);

/// Reads a log. Throws DataError naming the file if it cannot be read or is not a flight log.
FlightLog read_flight_log(const std::filesystem::path& file);

/// Explains the ranks' logs in plain text: the first operation of each group that did not end;
/// which rank waited for which there; ranks that never called it, with the last operation they did
/// call; ranks that called a different operation with that number; groups that ranks used in
/// opposite order; ranks without a log. Only logs of the newest start count; ranks with others are
/// named.
std::string explain(const std::vector<FlightLog>& logs);

}  // namespace lockstep::dist
