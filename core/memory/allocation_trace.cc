#include "core/memory/allocation_trace.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"

namespace lockstep {

namespace {

using Line = AllocationTrace::Line;
using Kind = Line::Kind;

constexpr std::string_view kSpaces = " \t\r";

/// Splits a text into lines, and each line into words.
class Lines {
 public:
  Lines(std::string_view text, std::string_view source) : rest_(text), source_(source) {}

  /// Moves to the next line; returns false at the end of the text.
  bool next() {
    if (rest_.empty()) return false;
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    words_ = line_;
    ++number_;
    return true;
  }

  /// The next word of the line; empty at the line's end.
  std::string_view word() {
    words_.remove_prefix(std::min(words_.find_first_not_of(kSpaces), words_.size()));
    const std::string_view word = words_.substr(0, words_.find_first_of(kSpaces));
    words_.remove_prefix(word.size());
    return word;
  }
  /// The rest of the line, without surrounding spaces.
  std::string_view remainder() {
    words_.remove_prefix(std::min(words_.find_first_not_of(kSpaces), words_.size()));
    const std::string_view all = words_.substr(0, words_.find_last_not_of(kSpaces) + 1);
    words_ = {};
    return all;
  }

  int64_t integer(const char* what) {
    const std::string_view text = word();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    check(error == std::errc{} && end == text.data() + text.size() && value >= 0,
          fmt::format("{}, a whole number from 0 to 2^63 - 1", what));
    return value;
  }
  void no_more() { check(word().empty(), "the end of the line after the event"); }

  void check(bool kept, std::string_view expected) const {
    LS_CHECK(kept, DataError, "[trace] {}:{}: expected {}, got \"{:.60}\".", source_, number_,
             expected, line_);
  }

 private:
  std::string_view rest_;
  std::string_view source_;
  std::string_view line_;
  std::string_view words_;  // the rest of the line
  int64_t number_ = 0;
};

}  // namespace

int64_t AllocationTrace::peak_live_bytes() const {
  std::vector<size_t> sizes(static_cast<size_t>(blocks));
  int64_t live = 0;
  int64_t peak = 0;
  for (const Line& line : lines) {
    if (line.kind == Kind::kMark) continue;
    size_t& size = sizes[static_cast<size_t>(line.number)];
    if (line.kind == Kind::kAllocate) {
      size = line.bytes;
      live += static_cast<int64_t>(size);
    } else {
      live -= static_cast<int64_t>(size);
    }
    peak = std::max(peak, live);
  }
  return peak;
}

AllocationTrace parse_allocation_trace(std::string_view text, std::string_view source) {
  // Sums of sizes are kept in 64 bits, so a trace that asks for more than any machine has is
  // refused.
  constexpr int64_t kMostBytes = int64_t{1} << 62;
  AllocationTraceBuilder builder;
  Lines lines(text, source);
  int64_t total = 0;
  while (lines.next()) {
    const std::string_view kind = lines.word();
    if (kind.empty() || kind.front() == '#') continue;
    lines.check(!builder.is_full(), "no more than 2^31 - 1 blocks and marks");
    if (kind == "a") {
      const auto id = lines.integer("the block's ID");
      const int64_t bytes = lines.integer("the block's bytes");
      lines.no_more();
      lines.check(bytes <= kMostBytes - total, "at most 2^62 bytes in all");
      total += bytes;
      lines.check(builder.allocate(static_cast<uint64_t>(id), static_cast<size_t>(bytes)),
                  "an ID that is not on loan");
    } else if (kind == "f") {
      const auto id = lines.integer("the block's ID");
      lines.no_more();
      lines.check(builder.free(static_cast<uint64_t>(id)),
                  "an ID that was allocated before and not freed since");
    } else {
      lines.check(kind == "m", "\"a ID BYTES\", \"f ID\", \"m LABEL\" or a comment after #");
      std::string label(lines.remainder());
      lines.check(!label.empty(), "a label after \"m\"");
      builder.mark(std::move(label));
    }
  }
  return builder.take();
}

AllocationTrace read_allocation_trace(const std::string& path) {
  std::string text;
  try {
    text = read_whole_file(path);
  } catch (const FileError& error) {
    throw DataError(fmt::format("[trace] {} cannot be read: {}.", path, error.reason()));
  }
  return parse_allocation_trace(text, path);
}

std::string to_string(const AllocationTrace& trace, std::string_view name) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "# {}: {} allocations over {} steps, peak live {} bytes\n", name,
                 trace.blocks, trace.labels.size(), trace.peak_live_bytes());
  for (const Line& line : trace.lines) {
    switch (line.kind) {
      case Kind::kAllocate:
        fmt::format_to(out, "a {} {}\n", line.number, line.bytes);
        break;
      case Kind::kFree:
        fmt::format_to(out, "f {}\n", line.number);
        break;
      case Kind::kMark:
        fmt::format_to(out, "m {}\n", trace.labels[static_cast<size_t>(line.number)]);
        break;
    }
  }
  return fmt::to_string(text);
}

bool AllocationTraceBuilder::allocate(uint64_t id, size_t bytes) {
  if (!on_loan_.try_emplace(id, trace_.blocks).second) return false;
  trace_.lines.push_back({Kind::kAllocate, trace_.blocks++, bytes});
  return true;
}

bool AllocationTraceBuilder::free(uint64_t id) {
  const auto found = on_loan_.find(id);
  if (found == on_loan_.end()) return false;
  trace_.lines.push_back({Kind::kFree, found->second, 0});
  on_loan_.erase(found);
  return true;
}

void AllocationTraceBuilder::mark(std::string label) {
  trace_.lines.push_back({Kind::kMark, static_cast<int32_t>(trace_.labels.size()), 0});
  trace_.labels.push_back(std::move(label));
}

void AllocationTraceBuilder::add(std::span<const TraceEntry> history) {
  for (const TraceEntry& entry : history) {
    if (is_full()) return;
    if (entry.action == TraceEntry::Action::kAlloc) {
      // If another thread reuses the address at once, the free may be recorded after the reuse.
      if (!allocate(entry.address, entry.size)) {
        free(entry.address);
        allocate(entry.address, entry.size);
      }
    } else if (entry.action == TraceEntry::Action::kFreeRequested) {
      free(entry.address);
    } else if (entry.action == TraceEntry::Action::kUserDefined) {
      mark(entry.label);
    }
  }
}

bool AllocationTraceBuilder::is_full() const {
  constexpr auto kMost = static_cast<size_t>(std::numeric_limits<int32_t>::max());
  return static_cast<size_t>(trace_.blocks) == kMost || trace_.labels.size() == kMost;
}

AllocationTrace AllocationTraceBuilder::take() { return std::exchange(trace_, {}); }

}  // namespace lockstep
