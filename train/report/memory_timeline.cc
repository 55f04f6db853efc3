#include "train/report/memory_timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "train/report/step_line.h"

namespace lockstep::train {

namespace {

using nlohmann::json;

constexpr const char* kHeld = "held when it began";
constexpr const char* kOthers = "others";

struct Block {
  int64_t size = 0;
  std::string group;
};
using Blocks = std::map<uint64_t, Block>;  ///< by address

/// What happens at a moment: the bytes by which a group changes.
struct Change {
  size_t group = 0;
  int64_t change = 0;
  double ms = 0;  ///< since the first moment
};

std::string group_of(const json& entry, MemoryGrouping grouping) {
  const char* key = grouping == MemoryGrouping::kOperator ? "op"
                    : grouping == MemoryGrouping::kModule ? "module"
                                                          : "phase";
  if (entry.contains(key)) return entry.at(key);
  if (grouping == MemoryGrouping::kModule) {
    const std::string phase = entry.value("phase", "");
    return phase.empty() ? "outside modules" : "outside modules, " + phase;
  }
  return "outside operators";
}

/// Largest size, address and time that is accepted: sums of two do not overflow.
constexpr uint64_t kMostNumber = uint64_t{1} << 62;

/// Json::get would take fractions, and has undefined behaviour for numbers out of range.
uint64_t number_of(const json& entry, const char* name) {
  const json& number = entry.at(name);
  LS_CHECK(number.is_number_unsigned() && number.get<uint64_t>() <= kMostNumber, DataError,
           "\"{}\" is no whole number from 0 to 2^62", name);
  return number.get<uint64_t>();
}

Block block_of(const json& entry, MemoryGrouping grouping) {
  return {static_cast<int64_t>(number_of(entry, "size")), group_of(entry, grouping)};
}

/// Returns the index of the entry at which the last step named in the record begins, and its title;
/// 0 if the record names no step.
size_t window_begin(const json& trace, std::string& title) {
  for (size_t i = trace.size(); i-- > 0;) {
    if (trace[i].at("action") != "user_defined") continue;
    title = trace[i].value("user_metadata", "");
    if (title.starts_with("step ")) return i;
  }
  title = "";
  return 0;
}

/// Returns the blocks allocated before entry `first`: those at the end of the record, with the
/// entries since `first` undone.
Blocks blocks_before(const json& record, size_t first, MemoryGrouping grouping) {
  Blocks blocks;
  for (const json& segment : record.at("segments")) {
    for (const json& block : segment.at("blocks")) {
      if (block.at("state") != "active_allocated") continue;
      blocks[number_of(block, "address")] = block_of(block, grouping);
    }
  }
  const json& trace = record.at("trace");
  for (size_t i = trace.size(); i-- > first;) {
    const json& entry = trace[i];
    const std::string& action = entry.at("action").get_ref<const std::string&>();
    if (action == "alloc") blocks.erase(number_of(entry, "addr"));
    if (action == "free_requested") blocks[number_of(entry, "addr")] = block_of(entry, grouping);
  }
  return blocks;
}

/// Records by how much each moment changes which group. The moments of a timeline are made last,
/// when the small groups are known and merged: a row of all groups for each would be quadratic.
class Recorder {
 public:
  explicit Recorder(const Blocks& held) {
    held_.group = index(kHeld);
    for (const auto& [address, block] : held) {
      blocks_[address] = {block.size, held_.group};
      held_.change += block.size;
      check(held_.change);
    }
    total_ = held_.change;
  }

  void follow(const json& entry, MemoryGrouping grouping) {
    const std::string& action = entry.at("action").get_ref<const std::string&>();
    const bool is_alloc = action == "alloc";
    if (!is_alloc && action != "free_requested") return;
    const uint64_t address = number_of(entry, "addr");
    Change change;
    if (is_alloc) {
      const Block block = block_of(entry, grouping);
      const Loan loan{block.size, index(block.group)};
      blocks_[address] = loan;
      change = {loan.group, loan.size};
    } else if (const auto place = blocks_.find(address); place != blocks_.end()) {
      change = {place->second.group, -place->second.size};
      blocks_.erase(place);
    }
    total_ += change.change;
    check(total_);
    mark(entry, change);
  }

  /// Adds a moment at the entry's time.
  void mark(const json& entry, Change change = {}) {
    const auto time_us = static_cast<int64_t>(number_of(entry, "time_us"));
    if (!first_us_) first_us_ = time_us;
    change.ms = static_cast<double>(time_us - *first_us_) / 1e3;
    changes_.push_back(change);
  }

  void fill(MemoryTimeline& timeline, size_t most_groups) const {
    timeline.peak = highest();
    std::vector<int64_t> at_peak(names_.size());
    at_peak[held_.group] = held_.change;
    for (size_t i = 0; i <= timeline.peak; ++i) at_peak[changes_[i].group] += changes_[i].change;

    std::vector<size_t> ranked(names_.size());
    std::iota(ranked.begin(), ranked.end(), size_t{0});
    std::stable_sort(ranked.begin() + 1, ranked.end(),
                     [&](size_t a, size_t b) { return at_peak[a] > at_peak[b]; });
    const bool all = ranked.size() <= most_groups;
    const size_t named = all ? ranked.size() : most_groups - 1;
    std::vector<size_t> places(names_.size());
    for (size_t i = 0; i < ranked.size(); ++i) {
      places[ranked[i]] = std::min(i, named);
      if (i < named) timeline.groups.push_back(names_[ranked[i]]);
    }
    if (!all) timeline.groups.push_back(kOthers);

    std::vector<int64_t> bytes(timeline.groups.size());
    bytes[places[held_.group]] = held_.change;
    for (const Change& change : changes_) {
      bytes[places[change.group]] += change.change;
      timeline.moments.push_back({change.ms, bytes});
    }
  }

 private:
  struct Loan {
    int64_t size;
    size_t group;
  };

  static void check(int64_t bytes) {
    LS_CHECK(bytes >= 0 && bytes <= static_cast<int64_t>(kMostNumber), DataError,
             "its blocks have more than 2^62 bytes together");
  }

  /// Returns the index of the first moment with the most bytes.
  size_t highest() const {
    size_t best = 0;
    int64_t bytes = held_.change, most = std::numeric_limits<int64_t>::min();
    for (size_t i = 0; i < changes_.size(); ++i) {
      bytes += changes_[i].change;
      if (bytes <= most) continue;
      most = bytes;
      best = i;
    }
    return best;
  }

  size_t index(const std::string& group) {
    const auto [place, is_new] = indices_.try_emplace(group, names_.size());
    if (is_new) names_.push_back(group);
    return place->second;
  }

  std::vector<std::string> names_;
  std::map<std::string, size_t> indices_;
  std::map<uint64_t, Loan> blocks_;  ///< by address
  Change held_;                      ///< before the first moment
  int64_t total_ = 0;
  std::optional<int64_t> first_us_;
  std::vector<Change> changes_;  ///< one for each moment
};

MemoryTimeline timeline_of(const json& record, MemoryGrouping grouping, size_t most_groups) {
  MemoryTimeline timeline;
  const json& trace = record.at("trace");
  timeline.device = record.at("device").get<std::string>();
  LS_CHECK(trace.is_array() && !trace.empty(), DataError, "it records nothing");
  const size_t first = window_begin(trace, timeline.title);
  Recorder recorder(blocks_before(record, first, grouping));
  recorder.mark(trace[first]);
  for (size_t i = first; i < trace.size(); ++i) recorder.follow(trace[i], grouping);
  recorder.fill(timeline, std::max<size_t>(most_groups, 2));
  return timeline;
}

}  // namespace

MemoryGrouping parse_memory_grouping(std::string_view name) {
  if (name == "operator") return MemoryGrouping::kOperator;
  if (name == "module") return MemoryGrouping::kModule;
  LS_CHECK(name == "phase", ConfigError,
           "[plot] memory is not grouped by \"{}\": expected operator, module or phase.", name);
  return MemoryGrouping::kPhase;
}

int64_t MemoryTimeline::Moment::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

MemoryTimeline parse_memory_timeline(std::string_view text, std::string_view origin,
                                     MemoryGrouping grouping, size_t most_groups) {
  const auto refuse = [&](const std::exception& error) {
    throw DataError(
        fmt::format("[plot] {} is no record of memory: expected what a run writes with "
                    "memory.snapshot_step set: {}.",
                    origin, error.what()));
  };
  try {
    return timeline_of(parse_json(text), grouping, most_groups);
  } catch (const json::exception& error) {
    refuse(error);
  } catch (const DataError& error) {
    refuse(error);
  }
  return {};
}

MemoryTimeline read_memory_timeline(const std::filesystem::path& path, MemoryGrouping grouping,
                                    size_t most_groups) {
  std::error_code ignored;
  const std::filesystem::path file =
      std::filesystem::is_directory(path, ignored) ? path / "memory.json" : path;
  std::string text;
  try {
    text = read_whole_file(file, kMostJsonBytes);
  } catch (const FileError& error) {
    throw DataError(fmt::format(
        "[plot] cannot read {}: {}. A run writes a record of memory with memory.snapshot_step set.",
        file.string(), error.reason()));
  }
  return parse_memory_timeline(text, file.string(), grouping, most_groups);
}

std::string peak_table(const MemoryTimeline& timeline) {
  const MemoryTimeline::Moment& peak = timeline.moments[timeline.peak];
  const int64_t total = peak.total();
  std::string table =
      fmt::format("{}{}: {} on loan at the peak, {:.1f} ms after its start\n", timeline.device,
                  timeline.title.empty() ? "" : ", " + timeline.title,
                  format_bytes(static_cast<uint64_t>(total)), peak.ms);
  for (size_t i = 0; i < timeline.groups.size(); ++i) {
    const double share =
        total == 0 ? 0 : 100 * static_cast<double>(peak.bytes[i]) / static_cast<double>(total);
    table +=
        fmt::format("{:>11}  {:5.1f} %  {}\n", format_bytes(static_cast<uint64_t>(peak.bytes[i])),
                    share, timeline.groups[i]);
  }
  return table;
}

}  // namespace lockstep::train
