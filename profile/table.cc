#include "profile/table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "core/base/check.h"
#include "core/base/json_line.h"
#include "profile/collective_labels.h"
#include "profile/memory_use.h"

namespace lockstep::profile {

namespace {

const std::vector<std::pair<std::string, GroupBy>> kGroups = {
    {"name", GroupBy::kName}, {"shapes", GroupBy::kShapes}, {"module", GroupBy::kModule}};
const std::vector<std::pair<std::string, SortBy>> kSorts = {
    {"self", SortBy::kSelf},   {"total", SortBy::kTotal}, {"calls", SortBy::kCalls},
    {"flops", SortBy::kFlops}, {"bytes", SortBy::kBytes}, {"memory", SortBy::kMemory},
    {"name", SortBy::kName}};

template <class T>
std::vector<std::string> names_of(const std::vector<std::pair<std::string, T>>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  return names;
}

template <class T>
T parse(const std::vector<std::pair<std::string, T>>& choices, const std::string& text) {
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
  }
  throw ConfigError(fmt::format("[profile] unknown name \"{}\": expected one of {}.", text,
                                fmt::join(names_of(choices), ", ")));
}

std::string shapes_text(const ProfileSpan& span) {
  std::string text;
  const auto add = [&](const std::vector<int64_t>& sizes) {
    text += fmt::format("{}[{}]", text.empty() ? "" : " ", fmt::join(sizes, ","));
  };
  for (const ArgumentInfo& argument : span.arguments) {
    if (argument.type == "TensorList") {
      text += fmt::format("{}({} tensors)", text.empty() ? "" : " ", argument.sizes_of_list.size());
    } else if (argument.type != "Scalar" && argument.type != "ScalarList" &&
               !argument.type.empty()) {
      add(argument.sizes);
    }
  }
  return text;
}

std::string group_of(const ProfileSpan& span, GroupBy group) {
  if (group == GroupBy::kShapes) return shapes_text(span);
  if (group == GroupBy::kName) return "";
  return span.kind == SpanKind::kCollective ? span.label : span.module;
}

double limit_ns(const ProfileSpan& span, const MachinePeaks& peaks) {
  if (peaks.bytes_per_second == 0) return 0;  // not measured
  const double arithmetic = static_cast<double>(span.flops) / peaks.flops(span.dtype);
  const double memory = static_cast<double>(span.bytes) / peaks.bytes_per_second;
  return 1e9 * std::max(arithmetic, memory);
}

/// What a row is sorted by, the largest first.
double key_of(const TableRow& row, SortBy sort) {
  switch (sort) {
    case SortBy::kTotal:
      return static_cast<double>(row.total_ns);
    case SortBy::kCalls:
      return static_cast<double>(row.calls);
    case SortBy::kFlops:
      return static_cast<double>(row.flops);
    case SortBy::kBytes:
      return static_cast<double>(row.bytes);
    case SortBy::kMemory:
      return static_cast<double>(row.requested);
    default:
      return static_cast<double>(row.self_ns);
  }
}

void add(TableRow& sum, const TableRow& row) {
  sum.calls += row.calls;
  sum.self_ns += row.self_ns;
  sum.flops += row.flops;
  sum.bytes += row.bytes;
  sum.requested += row.requested;
  sum.limit_ns += row.limit_ns;
}

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

std::string line_of(const TableRow& row, int64_t steps_ns, bool has_total, size_t name_width) {
  const auto rate = [&](int64_t amount) {
    return amount > 0 && row.self_ns > 0
               ? fmt::format("{:.1f}",
                             static_cast<double>(amount) / static_cast<double>(row.self_ns))
               : std::string();
  };
  const double peak = row.share_of_peak();
  std::string line = fmt::format(
      "{:<{}} {:<9} {:>7} {:>10.3f} {:>6.1f}% {:>10} {:>9.1f} {:>8} {:>7} {:>7} {:>8}", row.name,
      name_width,
      row.kind == SpanKind::kNode || row.kind == SpanKind::kOperator ? name(row.phase)
                                                                     : name(row.kind),
      row.calls, ms(row.self_ns), steps_ns > 0 ? 100 * ms(row.self_ns) / ms(steps_ns) : 0.0,
      has_total ? fmt::format("{:.3f}", ms(row.total_ns)) : "",
      static_cast<double>(row.self_ns) / 1e3 / static_cast<double>(std::max<int64_t>(row.calls, 1)),
      rate(row.flops), rate(row.bytes), peak > 0 ? fmt::format("{:.0f}%", 100 * peak) : "",
      row.requested > 0 ? fmt::format("{:.1f}", static_cast<double>(row.requested) / 1048576.0)
                        : "");
  if (!row.group.empty()) line += "  " + row.group;
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

int64_t steps_ns(const Profile& profile) {
  int64_t sum = 0;
  for (const ProfileSpan& span : profile.spans) {
    if (span.kind == SpanKind::kStep) sum += span.duration_ns;
  }
  return sum;
}

}  // namespace

double TableRow::share_of_peak() const {
  return self_ns > 0 ? limit_ns / static_cast<double>(self_ns) : 0;
}

std::vector<TableRow> rows_of(const Profile& profile, const MachinePeaks& peaks,
                              const TableOptions& options) {
  using Key = std::tuple<SpanKind, Phase, std::string, std::string>;
  std::map<Key, TableRow> rows;
  std::vector<TableRow*> row_of(profile.spans.size());
  for (size_t i = 0; i < profile.spans.size(); ++i) {
    const ProfileSpan& span = profile.spans[i];
    if (span.kind == SpanKind::kMemory) {
      const bool inside = span.parent != ProfileSpan::kNone && span.bytes > 0;
      if (inside) row_of[static_cast<size_t>(span.parent)]->requested += span.bytes;
      continue;
    }
    std::string group = group_of(span, options.group);
    TableRow& row = rows[{span.kind, span.phase, span.name, group}];
    row_of[i] = &row;
    row.kind = span.kind;
    row.phase = span.phase;
    row.name = span.name;
    row.group = std::move(group);
    ++row.calls;
    row.self_ns += span.self_ns;
    row.flops += span.flops;
    row.bytes += span.bytes;
    row.limit_ns += limit_ns(span, peaks);
    bool is_inside_its_own = false;
    for (int64_t at = span.parent; at != ProfileSpan::kNone && !is_inside_its_own;
         at = profile.spans[static_cast<size_t>(at)].parent) {
      is_inside_its_own = row_of[static_cast<size_t>(at)] == &row;
    }
    if (!is_inside_its_own) row.total_ns += span.duration_ns;
  }
  std::vector<TableRow> sorted;
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  // Rows of equal keys stay in the order of their names.
  if (options.sort == SortBy::kName) {
    std::ranges::stable_sort(sorted, {}, &TableRow::name);
  } else {
    std::ranges::stable_sort(sorted, std::greater<>(),
                             [&](const TableRow& row) { return key_of(row, options.sort); });
  }
  return sorted;
}

std::string table_text(const Profile& profile, const MachinePeaks& peaks,
                       const TableOptions& options) {
  const std::vector<TableRow> rows = rows_of(profile, peaks, options);
  const int64_t all_steps = steps_ns(profile);
  const size_t shown =
      options.top > 0 ? std::min(rows.size(), static_cast<size_t>(options.top)) : rows.size();
  size_t width = 24;
  for (size_t i = 0; i < shown; ++i) width = std::max(width, rows[i].name.size());
  std::string text;
  if (!profile.steps.empty()) {
    text += fmt::format("{} steps of {:.2f} ms", profile.steps.size(),
                        ms(all_steps) / static_cast<double>(profile.steps.size()));
    if (profile.rank.size > 1) text += fmt::format(", rank {}", profile.rank.rank);
    if (peaks.bytes_per_second > 0) {
      text +=
          fmt::format("; peak {:.0f} GFLOP/s in f32, {:.0f} in bf16, {:.1f} GB/s",
                      peaks.f32_flops / 1e9, peaks.bf16_flops / 1e9, peaks.bytes_per_second / 1e9);
    }
    text += "\n";
  }
  text += fmt::format("{:<{}} {:<9} {:>7} {:>10} {:>7} {:>10} {:>9} {:>8} {:>7} {:>7} {:>8}\n",
                      "name", width, "in", "calls", "self ms", "self", "total ms", "each us",
                      "GFLOP/s", "GB/s", "of peak", "MiB");
  TableRow rest;
  rest.kind = SpanKind::kRange;
  rest.name = fmt::format("({} more)", rows.size() - shown);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i < shown) {
      text += line_of(rows[i], all_steps, true, width);
    } else {
      add(rest, rows[i]);
    }
  }
  if (rest.calls > 0) text += line_of(rest, all_steps, false, width);
  return text + labels_text(profile) + peak_text(profile) + losses_text(profile);
}

std::string table_json(const Profile& profile, const MachinePeaks& peaks,
                       const TableOptions& options) {
  std::string text;
  for (const TableRow& row : rows_of(profile, peaks, options)) {
    JsonLine line;
    line.add("name", row.name).add("kind", name(row.kind)).add("phase", name(row.phase));
    if (options.group == GroupBy::kShapes) line.add("shapes", row.group);
    if (options.group == GroupBy::kModule) line.add("module", row.group);
    line.add("calls", row.calls)
        .add("self_ms", ms(row.self_ns))
        .add("total_ms", ms(row.total_ns))
        .add("flops", row.flops)
        .add("bytes", row.bytes)
        .add("requested_bytes", row.requested)
        .add("share_of_peak", row.share_of_peak());
    text += line.text() + "\n";
  }
  return text;
}

std::vector<std::string> group_names() { return names_of(kGroups); }
std::vector<std::string> sort_names() { return names_of(kSorts); }
GroupBy parse_group(const std::string& name) { return parse(kGroups, name); }
SortBy parse_sort(const std::string& name) { return parse(kSorts, name); }

}  // namespace lockstep::profile
