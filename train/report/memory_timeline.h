#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

/// By what blocks are told apart.
enum class MemoryGrouping { kOperator, kModule, kPhase };
/// "operator", "module" or "phase". Throws ConfigError naming the three.
MemoryGrouping parse_memory_grouping(std::string_view name);

/// Who held memory, from one moment to the next.
struct MemoryTimeline {
  struct Moment {
    double ms = 0;               ///< since the first moment
    std::vector<int64_t> bytes;  ///< on loan after it, by group
    int64_t total() const;
  };

  std::string device;
  std::string title;  ///< "step 3"; "" where the record names no step
  /// The first holds what was on loan when the record began; the others follow by falling share of
  /// the peak. What does not fit is in the last, "others".
  std::vector<std::string> groups;
  std::vector<Moment> moments;
  size_t peak = 0;  ///< the moment at which most was on loan, the first of several
};

/// From a run directory's memory.json, or from such a file: the step it was recorded for, or all of
/// the record where it names none. At most `most_groups` groups, at least 2. Throws DataError
/// naming the file if it cannot be read or is no such record.
MemoryTimeline read_memory_timeline(const std::filesystem::path& path, MemoryGrouping grouping,
                                    size_t most_groups);

/// A line for each group at the peak: bytes, share, name.
std::string peak_table(const MemoryTimeline& timeline);

}  // namespace lockstep::train
