#include "train/report/memory_timeline.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/json_text.h"
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

Block block_of(const json& entry, MemoryGrouping grouping) {
  return {entry.at("size").get<int64_t>(), group_of(entry, grouping)};
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
      blocks[block.at("address")] = block_of(block, grouping);
    }
  }
  const json& trace = record.at("trace");
  for (size_t i = trace.size(); i-- > first;) {
    const json& entry = trace[i];
    const std::string& action = entry.at("action").get_ref<const std::string&>();
    if (action == "alloc") blocks.erase(entry.at("addr").get<uint64_t>());
    if (action == "free_requested") blocks[entry.at("addr")] = block_of(entry, grouping);
  }
  return blocks;
}

/// Tracks the bytes of every group, moment by moment; `fill` then merges the small groups.
class Recorder {
 public:
  explicit Recorder(const Blocks& held) {
    (void)index(kHeld);
    for (const auto& [address, block] : held) {
      blocks_[address] = {block.size, 0};
      bytes_[0] += block.size;
    }
  }

  void follow(const json& entry, MemoryGrouping grouping) {
    const std::string& action = entry.at("action").get_ref<const std::string&>();
    const bool is_alloc = action == "alloc";
    if (!is_alloc && action != "free_requested") return;
    const uint64_t address = entry.at("addr").get<uint64_t>();
    if (is_alloc) {
      const Block block = block_of(entry, grouping);
      const Loan loan{block.size, index(block.group)};
      blocks_[address] = loan;
      bytes_[loan.group] += loan.size;
    } else if (const auto place = blocks_.find(address); place != blocks_.end()) {
      bytes_[place->second.group] -= place->second.size;
      blocks_.erase(place);
    }
    mark(entry.at("time_us").get<int64_t>());
  }

  void mark(int64_t time_us) {
    moments_.push_back({static_cast<double>(time_us - first_us_.value_or(time_us)) / 1e3, bytes_});
    if (!first_us_) first_us_ = time_us;
  }

  void fill(MemoryTimeline& timeline, size_t most_groups) const {
    const auto highest = std::ranges::max_element(moments_, {}, &MemoryTimeline::Moment::total);
    timeline.peak = static_cast<size_t>(highest - moments_.begin());
    std::vector<size_t> ranked(names_.size());
    std::iota(ranked.begin(), ranked.end(), size_t{0});
    const auto at_peak = [&](size_t group) {
      return group < highest->bytes.size() ? highest->bytes[group] : 0;
    };
    std::stable_sort(ranked.begin() + 1, ranked.end(),
                     [&](size_t a, size_t b) { return at_peak(a) > at_peak(b); });
    const bool all = ranked.size() <= most_groups;
    const size_t named = all ? ranked.size() : most_groups - 1;
    std::vector<size_t> places(names_.size());
    for (size_t i = 0; i < ranked.size(); ++i) {
      places[ranked[i]] = std::min(i, named);
      if (i < named) timeline.groups.push_back(names_[ranked[i]]);
    }
    if (!all) timeline.groups.push_back(kOthers);
    for (const MemoryTimeline::Moment& moment : moments_) {
      std::vector<int64_t> bytes(timeline.groups.size());
      for (size_t i = 0; i < moment.bytes.size(); ++i) bytes[places[i]] += moment.bytes[i];
      timeline.moments.push_back({moment.ms, std::move(bytes)});
    }
  }

 private:
  struct Loan {
    int64_t size;
    size_t group;
  };

  size_t index(const std::string& group) {
    const auto [place, is_new] = indices_.try_emplace(group, names_.size());
    if (is_new) {
      names_.push_back(group);
      bytes_.push_back(0);
    }
    return place->second;
  }

  std::vector<std::string> names_;
  std::map<std::string, size_t> indices_;
  std::map<uint64_t, Loan> blocks_;  ///< by address
  std::vector<int64_t> bytes_;       ///< by group
  std::optional<int64_t> first_us_;
  std::vector<MemoryTimeline::Moment> moments_;
};

json read_record(const std::filesystem::path& file) {
  std::ifstream stream(file);
  LS_CHECK(stream.good(), DataError,
           "[plot] cannot read {}: expected a record of memory. Train with memory.snapshot_step "
           "set.",
           file.string());
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  try {
    check_json_nesting(text);
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("[plot] {} is no record of memory: {}", file.string(), error.what()));
  }
  return json::parse(text);
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

MemoryTimeline read_memory_timeline(const std::filesystem::path& path, MemoryGrouping grouping,
                                    size_t most_groups) {
  const std::filesystem::path file =
      std::filesystem::is_directory(path) ? path / "memory.json" : path;
  MemoryTimeline timeline;
  try {
    const json record = read_record(file);
    const json& trace = record.at("trace");
    timeline.device = record.at("device").get<std::string>();
    const size_t first = window_begin(trace, timeline.title);
    Recorder recorder(blocks_before(record, first, grouping));
    if (first < trace.size()) recorder.mark(trace[first].at("time_us").get<int64_t>());
    for (size_t i = first; i < trace.size(); ++i) recorder.follow(trace[i], grouping);
    LS_CHECK(!trace.empty(), DataError, "[plot] {} records nothing.", file.string());
    recorder.fill(timeline, std::max<size_t>(most_groups, 2));
  } catch (const json::exception& error) {
    throw DataError(
        fmt::format("[plot] {} is no record of memory: expected what a run writes with "
                    "memory.snapshot_step set: {}.",
                    file.string(), error.what()));
  }
  return timeline;
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
