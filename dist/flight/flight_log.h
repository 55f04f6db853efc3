#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "dist/flight/flight_recorder.h"

namespace lockstep::dist {

/// A file of `FlightRecorder::write`.
struct FlightLog {
  int rank = 0;
  int world_size = 1;
  std::string host;
  int64_t process = 0;     ///< its number on the host
  std::string reason;      ///< why it was written
  int64_t written_ns = 0;  ///< when, on the system's clock
  uint64_t recorded = 0;   ///< operations in all, of which `records` are the last
  std::vector<FlightGroup> groups;
  std::vector<FlightRecord> records;  ///< oldest first

  friend bool operator==(const FlightLog&, const FlightLog&) = default;
};

/// The text of such a file, JSON. Bytes of names and reasons that are not UTF-8 become U+FFFD.
std::string format_flight_log(const FlightLog& log);
/// Its inverse. Throws DataError, starting with `origin`, for what is not such a text.
FlightLog parse_flight_log(std::string_view text, std::string_view origin);

/// Throws DataError for a file that cannot be read or is not such a one, naming it.
FlightLog read_flight_log(const std::filesystem::path& file);

/// What the ranks' logs tell together, for a person: the first operation that did not end, of each
/// group; which rank waited for which there; ranks that never came to it, with the last operation
/// that they did come to; ranks whose operation of that number was another one, with both; groups
/// that ranks used in opposite order; ranks whose log is missing.
std::string explain(const std::vector<FlightLog>& logs);

}  // namespace lockstep::dist
