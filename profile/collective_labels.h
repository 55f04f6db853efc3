#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace lockstep::profile {

/// The collectives of one kind, label and group.
struct LabelRow {
  std::string label;  ///< "bucket 3", "unit h.0"
  std::string name;   ///< "all_reduce"
  std::string group;
  int64_t calls = 0;
  int64_t total_ns = 0;  ///< from their start to their end, also where others ran at the same time
  int64_t longest_ns = 0;
  int64_t bytes = 0;
};

/// The collectives that have labels, those that took longest first.
std::vector<LabelRow> label_rows(const Profile& profile);
/// A table of them, of the first `top` rows; "" where there are none.
std::string labels_text(const Profile& profile, size_t top = 10);

}  // namespace lockstep::profile
