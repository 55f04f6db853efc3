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

/// The requests of a program to its allocator, in order, to be replayed through any other.
///
/// As text, an event a line: `a ID BYTES` allocates, `f ID` frees, `m LABEL` says that a training
/// step begins. IDs are numbers below 2^63; one may be used again after it was freed. Lines that
/// start with # and empty lines say nothing.
struct AllocationTrace {
  struct Line {
    enum class Kind : uint8_t { kAllocate, kFree, kMark };
    Kind kind = Kind::kMark;
    int32_t number = 0;  ///< of the block, in order of allocation, or of the mark
    size_t bytes = 0;    ///< as asked for; of kAllocate
    friend bool operator==(const Line&, const Line&) = default;
  };
  std::vector<Line> lines;
  std::vector<std::string> labels;  ///< of the marks
  int32_t blocks = 0;

  /// The highest sum of bytes on loan, as asked for.
  int64_t peak_live_bytes() const;

  friend bool operator==(const AllocationTrace&, const AllocationTrace&) = default;
};

/// `source` names the text in errors. Throws DataError with source, line, what was expected and
/// what was found: unknown events, numbers out of range, an ID that is on loan already or is not,
/// more than 2^31 - 1 blocks.
AllocationTrace parse_allocation_trace(std::string_view text, std::string_view source);
/// Throws DataError, also when the file cannot be read.
AllocationTrace read_allocation_trace(const std::string& path);
/// The inverse of `parse_allocation_trace`, after a line that says what the trace holds. `name`
/// must be one line.
std::string to_string(const AllocationTrace& trace, std::string_view name);
/// Makes a trace of blocks that are known by IDs or by addresses.
class AllocationTraceBuilder {
 public:
  /// False, and nothing is added, when `id` is on loan.
  bool allocate(uint64_t id, size_t bytes);
  /// False, and nothing is added, when `id` is not on loan.
  bool free(uint64_t id);
  void mark(std::string label);
  /// Adds what an allocator's history says about blocks; what the user noted there are marks.
  /// Histories that follow each other may be added one after the other. Frees of blocks that are
  /// older are left out.
  void add(std::span<const TraceEntry> history);

  /// Whether numbers of blocks and marks are used up; nothing may be added then.
  bool is_full() const;
  AllocationTrace take();

 private:
  AllocationTrace trace_;
  std::unordered_map<uint64_t, int32_t> on_loan_;  // numbers of blocks by ID
};

}  // namespace lockstep
