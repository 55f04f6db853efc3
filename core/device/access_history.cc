#include "core/device/access_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep {

void VectorClock::join(const VectorClock& other) {
  if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size());
  for (size_t i = 0; i < other.ticks_.size(); ++i) {
    ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
  }
}

uint64_t VectorClock::tick(size_t stream) {
  if (ticks_.size() <= stream) ticks_.resize(stream + 1);
  return ++ticks_[stream];
}

void AccessHistory::each_use(
    const Footprint& footprint,
    FunctionRef<bool(const MemoryUseRef&, uintptr_t, uintptr_t)> visit) const {
  auto cell = cells_.upper_bound(footprint.begin());
  if (cell != cells_.begin()) --cell;
  for (; cell != cells_.end() && cell->first < footprint.end(); ++cell) {
    const uintptr_t begin = std::max(cell->first, footprint.begin());
    const uintptr_t end = std::min(cell->second.end, footprint.end());
    if (begin >= end) continue;
    for (const MemoryUseRef& use : cell->second.uses) {
      if (visit(use, begin, end)) return;
    }
  }
}

AccessHistory::Cells::iterator AccessHistory::split(uintptr_t address) {
  const auto next = cells_.lower_bound(address);
  if (next == cells_.begin()) return next;
  Cell& before = std::prev(next)->second;
  if (before.end <= address) return next;
  Cell behind = before;
  before.end = address;
  return cells_.emplace_hint(next, address, std::move(behind));
}

void AccessHistory::note(Cell& cell, const MemoryUseRef& use, const VectorClock& now) {
  // A later use that is ordered after this one is also ordered after those that this one replaces.
  std::erase_if(cell.uses, [&](const MemoryUseRef& old) {
    const bool covered = !use->footprint.has_gaps() || use->footprint == old->footprint;
    return covered && (use->written || !old->written) && old->happened_before(now);
  });
  // Limits the cost of many strided uses of one range: drops the oldest, and with it races with it.
  constexpr size_t kMost = 64;
  if (cell.uses.size() >= kMost) cell.uses.erase(cell.uses.begin());
  cell.uses.push_back(use);
}

void AccessHistory::add(const MemoryUseRef& use, const VectorClock& now) {
  const uintptr_t begin = use->footprint.begin();
  const uintptr_t end = use->footprint.end();
  if (begin == end) return;
  split(end);
  auto cell = split(begin);
  uintptr_t at = begin;
  while (at < end) {
    if (cell == cells_.end() || cell->first > at) {
      const uintptr_t until = cell == cells_.end() ? end : std::min(end, cell->first);
      cell = cells_.emplace_hint(cell, at, Cell{until, {}});
    }
    note(cell->second, use, now);
    at = cell->second.end;
    // Merge neighbours with equal uses, which a write across several cells leaves behind.
    if (cell->first > begin) {
      const auto before = std::prev(cell);
      if (before->second.end == cell->first && before->second.uses == cell->second.uses) {
        before->second.end = at;
        cells_.erase(cell);
        cell = before;
      }
    }
    ++cell;
  }
}

void AccessHistory::forget(const VectorClock& done) {
  for (auto cell = cells_.begin(); cell != cells_.end();) {
    std::erase_if(cell->second.uses,
                  [&](const MemoryUseRef& use) { return use->happened_before(done); });
    cell = cell->second.uses.empty() ? cells_.erase(cell) : std::next(cell);
  }
}

}  // namespace lockstep
