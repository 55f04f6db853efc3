#include "profile/collective_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

namespace lockstep::profile {

namespace {

void add(LabelRow& sum, const LabelRow& row) {
  sum.calls += row.calls;
  sum.total_ns += row.total_ns;
  sum.longest_ns = std::max(sum.longest_ns, row.longest_ns);
  sum.bytes += row.bytes;
}

std::string line_of(const LabelRow& row, size_t width) {
  const auto ns = static_cast<double>(row.total_ns);
  const auto bytes = static_cast<double>(row.bytes);
  std::string line =
      fmt::format("{:<{}} {:<16} {:>7} {:>10.3f} {:>9.1f} {:>10.1f} {:>8.2f} {:>7}  {}", row.label,
                  width, row.name, row.calls, ns / 1e6, ns / 1e3 / static_cast<double>(row.calls),
                  static_cast<double>(row.longest_ns) / 1e3, bytes / 1048576.0,
                  row.total_ns > 0 ? fmt::format("{:.2f}", bytes / ns) : "", row.group);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::vector<LabelRow> label_rows(const Profile& profile) {
  std::map<std::tuple<std::string, std::string, std::string>, LabelRow> rows;
  for (const ProfileSpan& span : profile.spans) {
    if (span.kind != SpanKind::kCollective || span.label.empty()) continue;
    add(rows[{span.label, span.name, span.note}], {.label = {},
                                                   .name = {},
                                                   .group = {},
                                                   .calls = 1,
                                                   .total_ns = span.duration_ns,
                                                   .longest_ns = span.duration_ns,
                                                   .bytes = span.bytes});
  }
  std::vector<LabelRow> sorted;
  for (auto& [key, row] : rows) {
    std::tie(row.label, row.name, row.group) = key;
    sorted.push_back(std::move(row));
  }
  std::ranges::stable_sort(sorted, std::greater<>(), &LabelRow::total_ns);
  return sorted;
}

std::string labels_text(const Profile& profile, size_t top) {
  const std::vector<LabelRow> rows = label_rows(profile);
  if (rows.empty()) return "";
  const size_t shown = std::min(top, rows.size());
  size_t width = 16;
  for (size_t i = 0; i < shown; ++i) width = std::max(width, rows[i].label.size());
  std::string text =
      fmt::format("{:<{}} {:<16} {:>7} {:>10} {:>9} {:>10} {:>8} {:>7}  {}\n", "collectives of",
                  width, "", "calls", "total ms", "each us", "longest us", "MiB", "GB/s", "group");
  LabelRow rest;
  rest.label = fmt::format("({} more)", rows.size() - shown);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i < shown) {
      text += line_of(rows[i], width);
    } else {
      add(rest, rows[i]);
    }
  }
  return rest.calls > 0 ? text + line_of(rest, width) : text;
}

}  // namespace lockstep::profile
