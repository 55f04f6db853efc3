#pragma once

#include <iterator>
#include <map>

namespace lockstep::cuda {

/// Ranges of addresses at which memory is mapped: begin and end of each. Those that touch stay
/// apart, since one call of the driver must not span two reserved ranges.
class MappedRanges {
 public:
  using Address = unsigned long long;

  void add(Address begin, Address end) { ranges_.emplace(begin, end); }

  /// Removes [begin, end), which may be parts of ranges, or several.
  void remove(Address begin, Address end) {
    auto next = ranges_.lower_bound(begin);
    if (next != ranges_.begin()) {
      Address& last = std::prev(next)->second;
      if (last > end) ranges_.emplace(end, last);
      if (last > begin) last = begin;
    }
    while (next != ranges_.end() && next->first < end) {
      if (next->second > end) ranges_.emplace(end, next->second);
      next = ranges_.erase(next);
    }
  }

  auto begin() const { return ranges_.begin(); }
  auto end() const { return ranges_.end(); }

 private:
  std::map<Address, Address> ranges_;
};

}  // namespace lockstep::cuda
