#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/machine_peaks.h"
#include "profile/profile.h"

namespace lockstep::profile {

/// What the spans of one row have in common, besides name, kind and phase.
enum class GroupBy : uint8_t { kName, kShapes, kModule };
enum class SortBy : uint8_t { kSelf, kTotal, kCalls, kFlops, kBytes, kMemory, kName };

struct TableOptions {
  GroupBy group = GroupBy::kName;
  SortBy sort = SortBy::kSelf;
  int64_t top = 25;  ///< rows; the others are added up in one; 0: all
};

/// Spans that a table shows as one.
struct TableRow {
  SpanKind kind = SpanKind::kOperator;
  Phase phase = Phase::kForward;
  std::string name;
  std::string group;  ///< shapes or module
  int64_t calls = 0;
  int64_t self_ns = 0;   ///< without spans inside
  int64_t total_ns = 0;  ///< with them; of a row's spans inside each other, the outermost
  int64_t flops = 0;
  int64_t bytes = 0;
  int64_t requested = 0;  ///< bytes of memory, without those of spans inside
  double limit_ns = 0;    ///< time that the work would take at the machine's peaks

  /// Part of the machine's peak that was reached, 0 to 1; 0 for rows without work of their own.
  double share_of_peak() const;
};

/// All rows, sorted; times of the whole profile. Peaks of 0 are not known.
std::vector<TableRow> rows_of(const Profile& profile, const MachinePeaks& peaks,
                              const TableOptions& options);

/// A table of the rows: for each calls, time without and with the spans inside, share of the steps'
/// time, rates, and share of the machine's peak.
std::string table_text(const Profile& profile, const MachinePeaks& peaks,
                       const TableOptions& options);
/// The rows as JSON objects, a line each, all of them.
std::string table_json(const Profile& profile, const MachinePeaks& peaks,
                       const TableOptions& options);

/// "name", "shapes", "module"; and of the columns. For messages and options.
std::vector<std::string> group_names();
std::vector<std::string> sort_names();
GroupBy parse_group(const std::string& name);
SortBy parse_sort(const std::string& name);

}  // namespace lockstep::profile
