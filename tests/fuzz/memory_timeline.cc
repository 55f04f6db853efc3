#include "train/report/memory_timeline.h"

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

constexpr size_t kMostGroups = 4;

Outcome parse_timeline(const std::string& text, train::MemoryGrouping grouping) {
  train::MemoryTimeline timeline;
  try {
    timeline = train::parse_memory_timeline(text, "fuzzed", grouping, kMostGroups);
  } catch (const DataError& error) {
    require(std::string(error.what()).starts_with("[plot] fuzzed is no record of memory"),
            "an error names its source");
    return Outcome::kRefused;
  }
  require(!timeline.groups.empty() && timeline.groups.size() <= kMostGroups,
          "groups beyond the limit are merged");
  require(timeline.peak < timeline.moments.size(), "the peak is one of the moments");
  const int64_t most = timeline.moments[timeline.peak].total();
  for (const auto& moment : timeline.moments) {
    require(moment.bytes.size() == timeline.groups.size(), "a moment has the bytes of each group");
    for (const int64_t bytes : moment.bytes) require(bytes >= 0, "no group has negative bytes");
    require(moment.total() <= most, "no moment has more bytes than the peak");
  }
  require(!train::peak_table(timeline).empty(), "every timeline has a table");
  return Outcome::kAccepted;
}

}  // namespace

Outcome fuzz_memory_timeline(Input input) {
  const std::string text = text_of(input);
  const Outcome outcome = parse_timeline(text, train::MemoryGrouping::kOperator);
  parse_timeline(text, train::MemoryGrouping::kModule);
  parse_timeline(text, train::MemoryGrouping::kPhase);
  return outcome;
}

}  // namespace lockstep::fuzz
