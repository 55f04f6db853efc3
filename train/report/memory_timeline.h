#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

/// The property by which blocks are grouped.
enum class MemoryGrouping { kOperator, kModule, kPhase };
/// "operator", "module" or "phase". Throws ConfigError naming the three.
MemoryGrouping parse_memory_grouping(std::string_view name);

/// Bytes that each group of blocks held, moment by moment.
struct MemoryTimeline {
  struct Moment {
    double ms = 0;               ///< since the first moment
    std::vector<int64_t> bytes;  ///< allocated bytes after it, by group
    int64_t total() const;
  };

  std::string device;
  std::string title;  ///< "step 3"; "" where the record names no step
  /// The first group holds what was allocated when the record began; the others follow by
  /// decreasing bytes at the peak. The last, "others", sums the groups beyond the limit.
  std::vector<std::string> groups;
  std::vector<Moment> moments;
  size_t peak = 0;  ///< index of the first moment with the most bytes
};

/// Parses the text of a memory.json: the step it was recorded for, or the whole record if it names
/// no step. Returns at most `most_groups` groups (at least 2); time and memory grow with the text
/// and with the moments times these groups. Throws DataError naming `origin` for other text.
MemoryTimeline parse_memory_timeline(std::string_view text, std::string_view origin,
                                     MemoryGrouping grouping, size_t most_groups);
/// Parses a run directory's memory.json, or such a file. Throws DataError naming the file if it
/// cannot be read or is no such record.
MemoryTimeline read_memory_timeline(const std::filesystem::path& path, MemoryGrouping grouping,
                                    size_t most_groups);

/// A table of the groups at the peak, a line each: bytes, share, name.
std::string peak_table(const MemoryTimeline& timeline);

}  // namespace lockstep::train
