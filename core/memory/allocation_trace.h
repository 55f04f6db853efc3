#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/memory/snapshot.h"

namespace lockstep {

/// The requests of a program to its allocator, in order; it can be replayed through any allocator.
///
/// The text form has one event a line: `a ID BYTES` allocates, `f ID` frees, `m LABEL` marks the
/// beginning of a training step. IDs are numbers below 2^63 and may be reused after the free. Lines
/// that start with # and empty lines are ignored.
struct AllocationTrace {
  struct Line {
    enum class Kind : uint8_t { kAllocate, kFree, kMark };
    Kind kind = Kind::kMark;
    int32_t number = 0;  ///< number of the block, in order of allocation, or of the mark
    size_t bytes = 0;    ///< requested size, for kAllocate
    friend bool operator==(const Line&, const Line&) = default;
  };
  std::vector<Line> lines;
  std::vector<std::string> labels;  ///< label of each mark
  int32_t blocks = 0;

  /// The highest sum of requested bytes of live blocks.
  int64_t peak_live_bytes() const;

  friend bool operator==(const AllocationTrace&, const AllocationTrace&) = default;
};

/// Parses the text form. `source` names the text in errors. Throws DataError with source, line, the
/// expected and the actual value: for unknown events, numbers out of range, an allocation of a live
/// ID, a free of an ID that is not live, and more than 2^31 - 1 blocks.
AllocationTrace parse_allocation_trace(std::string_view text, std::string_view source);
/// Parses a file. Throws DataError, also if the file cannot be read.
AllocationTrace read_allocation_trace(const std::string& path);
/// The inverse of `parse_allocation_trace`, after a comment line that summarizes the trace. `name`
/// must be one line.
std::string to_string(const AllocationTrace& trace, std::string_view name);
/// Builds a trace of blocks that are identified by IDs or by addresses.
class AllocationTraceBuilder {
 public:
  /// Returns false, and adds nothing, if `id` is live.
  bool allocate(uint64_t id, size_t bytes);
  /// Returns false, and adds nothing, if `id` is not live.
  bool free(uint64_t id);
  void mark(std::string label);
  /// Adds the allocations and frees of an allocator's history; user-defined entries become marks.
  /// Consecutive histories may be added one after the other. Skips frees of blocks that were
  /// allocated before.
  void add(std::span<const TraceEntry> history);

  /// Whether the numbers of blocks or marks are used up; then nothing more may be added.
  bool is_full() const;
  AllocationTrace take();

 private:
  AllocationTrace trace_;
  std::unordered_map<uint64_t, int32_t> on_loan_;  // block number of each live ID
};

}  // namespace lockstep
