#include "core/memory/plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/check.h"

namespace lockstep {

namespace {

constexpr size_t kUnit = 512;

size_t whole_units(size_t bytes) { return std::max((bytes + kUnit - 1) / kUnit * kUnit, kUnit); }

/// A block with a place in the arena.
struct Placed {
  size_t offset = 0;
  size_t limit = 0;
  int32_t begin = 0;
  int32_t end = 0;
};

enum class Fit : uint8_t { kLowest, kTightest };

/// An arena that is filled block by block.
class Arena {
 public:
  explicit Arena(Fit fit) : fit_(fit) {}

  size_t place(const BlockLifetime& block) {
    const size_t bytes = whole_units(block.bytes);
    const size_t offset = find(block, bytes);
    const auto at = std::ranges::upper_bound(placed_, offset, {}, &Placed::offset);
    placed_.insert(at, {offset, offset + bytes, block.begin, block.end});
    peak_ = std::max(peak_, offset + bytes);
    return offset;
  }

  size_t peak() const { return peak_; }

 private:
  size_t find(const BlockLifetime& block, size_t bytes) const {
    size_t free_from = 0;  // end of the blocks seen so far that live at the same time
    size_t best = MemoryPlan::kUnplanned;
    size_t best_gap = ~size_t{0};
    for (const Placed& other : placed_) {
      if (other.end <= block.begin || block.end <= other.begin) continue;
      if (other.offset >= free_from + bytes) {
        const size_t gap = other.offset - free_from;
        if (fit_ == Fit::kLowest || gap == bytes) return free_from;
        if (gap < best_gap) {
          best_gap = gap;
          best = free_from;
        }
      }
      free_from = std::max(free_from, other.limit);
    }
    return best != MemoryPlan::kUnplanned ? best : free_from;
  }

  Fit fit_;
  std::vector<Placed> placed_;  // by offset
  size_t peak_ = 0;
};

size_t most_live(std::span<const BlockLifetime> blocks) {
  std::vector<std::pair<int32_t, int64_t>> changes;  // at equal events frees come first
  changes.reserve(2 * blocks.size());
  for (const BlockLifetime& block : blocks) {
    const auto bytes = static_cast<int64_t>(whole_units(block.bytes));
    changes.emplace_back(block.begin, bytes);
    changes.emplace_back(block.end, -bytes);
  }
  std::ranges::sort(changes);
  int64_t live = 0;
  int64_t most = 0;
  for (const auto& [event, change] : changes) {
    live += change;
    most = std::max(most, live);
  }
  return static_cast<size_t>(most);
}

using Order = std::vector<uint32_t>;

/// Block numbers by falling `weight`; equal ones keep their order.
template <class Weight>
Order by_falling(std::span<const BlockLifetime> blocks, Weight weight) {
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::greater{},
                           [&](uint32_t number) { return weight(blocks[number]); });
  return order;
}

/// Orders to try. Large blocks first leaves the small ones to fill the gaps. Weighting the size by
/// the lifetime puts long-lived blocks at the bottom.
std::vector<Order> orders(std::span<const BlockLifetime> blocks) {
  const auto life = [](const BlockLifetime& block) {
    return static_cast<double>(block.end - block.begin);
  };
  const auto size = [](const BlockLifetime& block) { return static_cast<double>(block.bytes); };
  return {
      by_falling(blocks, size),
      by_falling(blocks, [&](const auto& block) { return size(block) * life(block); }),
      by_falling(blocks, life),
      by_falling(blocks, [](const auto& block) { return -block.begin; }),
  };
}

}  // namespace

Packing pack_lifetimes(std::span<const BlockLifetime> blocks) {
  // Number of placements (blocks x attempts) beyond which the gain is not worth the time.
  constexpr size_t kMostPlacements = 80'000;

  Packing best;
  best.lower_bound = most_live(blocks);
  if (blocks.empty()) return best;
  best.peak = ~size_t{0};
  size_t placements = 0;
  std::vector<size_t> offsets(blocks.size());
  // Places the blocks in `order`. Returns the index at which the arena outgrew the best one, or the
  // end if it did not; then it becomes the best one.
  const auto attempt = [&](const Order& order, Fit fit) {
    Arena arena(fit);
    for (size_t i = 0; i < order.size(); ++i) {
      ++placements;
      offsets[order[i]] = arena.place(blocks[order[i]]);
      if (arena.peak() >= best.peak) return i;
    }
    best.offsets = offsets;
    best.peak = arena.peak();
    return order.size();
  };
  const auto goes_on = [&] { return best.peak > best.lower_bound && placements < kMostPlacements; };

  Order best_order;
  for (const Order& order : orders(blocks)) {
    for (const Fit fit : {Fit::kLowest, Fit::kTightest}) {
      if (goes_on() && attempt(order, fit) == order.size()) best_order = order;
    }
  }
  // A block that found no good place is placed first in the next attempt.
  for (Order order = best_order; goes_on();) {
    const auto stuck = static_cast<std::ptrdiff_t>(attempt(order, Fit::kLowest));
    if (stuck == std::ssize(order)) continue;
    if (stuck == 0) break;
    std::rotate(order.begin(), order.begin() + stuck, order.begin() + stuck + 1);
  }
  return best;
}

int32_t StepRecording::allocate(size_t bytes) {
  if (!is_complete()) return -1;
  requests_.push_back({whole_units(bytes), events_++, kSurvived});
  return static_cast<int32_t>(requests_.size()) - 1;
}

void StepRecording::free(int32_t index) { requests_[static_cast<size_t>(index)].end = events_++; }

bool StepRecording::operator==(const StepRecording& other) const {
  // Events are numbered without gaps: the begins are the numbers that are no ends.
  return std::ranges::equal(requests_, other.requests_, [](const auto& a, const auto& b) {
    return a.bytes == b.bytes && a.end == b.end;
  });
}

namespace {

/// The requests that were freed before the step ended.
std::vector<BlockLifetime> blocks_within(const StepRecording& step) {
  std::vector<BlockLifetime> within;
  for (const BlockLifetime& request : step.requests()) {
    if (request.end != StepRecording::kSurvived) within.push_back(request);
  }
  return within;
}

/// The last owner of each byte of the arena, as block numbers over ranges.
class ByteOwners {
 public:
  /// Assigns a range to `number` and appends its previous owners to `before`, each once.
  void move_in(size_t offset, size_t limit, int32_t number, std::vector<int32_t>& before) {
    const size_t first = before.size();
    split(offset);
    split(limit);
    auto at = ranges_.lower_bound(offset);
    while (at != ranges_.end() && at->first < limit) {
      before.push_back(at->second.number);
      at = ranges_.erase(at);
    }
    ranges_.emplace(offset, Range{limit, number});
    const auto found = before.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(found, before.end());
    before.erase(std::unique(found, before.end()), before.end());
  }

 private:
  struct Range {
    size_t limit = 0;
    int32_t number = 0;
  };

  /// Splits the range that contains `offset`, if any, there.
  void split(size_t offset) {
    auto at = ranges_.upper_bound(offset);
    if (at == ranges_.begin()) return;
    --at;
    if (at->first == offset || at->second.limit <= offset) return;
    ranges_.emplace(offset, at->second);
    at->second.limit = offset;
  }

  std::map<size_t, Range> ranges_;  // by offset; bytes never owned are missing
};

}  // namespace

MemoryPlan::MemoryPlan(StepRecording recording) : recording_(std::move(recording)) {
  const std::vector<BlockLifetime>& requests = recording_.requests();
  const Packing packing = pack_lifetimes(blocks_within(recording_));
  planned_peak_ = packing.peak;
  lower_bound_ = packing.lower_bound;

  offsets_.assign(requests.size(), kUnplanned);
  first_predecessor_.assign(requests.size() + 1, 0);
  ByteOwners owners;
  size_t next = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    first_predecessor_[i] = predecessors_.size();
    if (requests[i].end == StepRecording::kSurvived) continue;
    offsets_[i] = packing.offsets[next++];
    owners.move_in(offsets_[i], offsets_[i] + requests[i].bytes, static_cast<int32_t>(i),
                   predecessors_);
  }
  first_predecessor_.back() = predecessors_.size();
}

std::span<const int32_t> MemoryPlan::predecessors(int32_t index) const {
  const auto i = static_cast<size_t>(index);
  return std::span(predecessors_)
      .subspan(first_predecessor_[i], first_predecessor_[i + 1] - first_predecessor_[i]);
}

bool StepPlanner::mark_step() {
  bool is_new = false;
  if (in_step_) {
    if (has_plan_ && !diverged_) ++planned_steps_;
    is_new = adopt(std::move(recording_));
  }
  recording_ = StepRecording{};
  in_step_ = true;
  ++step_;
  diverged_ = !has_plan_;
  late_.clear();
  for (size_t i = 0; i < on_loan_.size(); ++i) {
    if (on_loan_[i] != 0) late_.push_back(static_cast<int32_t>(i));
  }
  return is_new;
}

bool StepPlanner::adopt(StepRecording recording) {
  if (!recording.is_complete() || (has_plan_ && !diverged_)) return false;
  const bool is_wanted = !has_plan_ || recording == before_;
  before_ = std::move(recording);
  // Live blocks of the old plan could overlap those of the new one.
  if (!is_wanted || live_count_ > 0) return false;
  plan_ = MemoryPlan(before_);
  has_plan_ = true;
  on_loan_.assign(static_cast<size_t>(plan_.requests()), 0);
  return true;
}

bool StepPlanner::is_free(int32_t index) const {
  const auto on_loan = [&](int32_t other) { return on_loan_[static_cast<size_t>(other)] != 0; };
  // Checking the direct predecessors suffices: every request so far got its place, so earlier
  // owners of these bytes were freed before the predecessors were allocated.
  if (std::ranges::any_of(plan_.predecessors(index), on_loan)) return false;
  const size_t begin = plan_.offset(index);
  const size_t end = begin + plan_.bytes(index);
  return std::ranges::none_of(late_, [&](int32_t other) {
    return on_loan(other) && plan_.offset(other) < end &&
           begin < plan_.offset(other) + plan_.bytes(other);
  });
}

StepPlanner::Ticket StepPlanner::allocate(size_t bytes) {
  if (!in_step_) return {};
  Ticket ticket;
  ticket.step = step_;
  ticket.index = recording_.allocate(bytes);
  if (diverged_) return ticket;
  if (ticket.index < 0 || ticket.index >= plan_.requests() || bytes > plan_.bytes(ticket.index)) {
    diverged_ = true;
    return ticket;
  }
  const size_t offset = plan_.offset(ticket.index);
  if (offset == MemoryPlan::kUnplanned) return ticket;
  if (!is_free(ticket.index)) {
    diverged_ = true;
    return ticket;
  }
  on_loan_[static_cast<size_t>(ticket.index)] = 1;
  ++live_count_;
  ticket.offset = offset;
  return ticket;
}

void StepPlanner::free(const Ticket& ticket) {
  if (ticket.index < 0) return;
  if (ticket.step == step_) recording_.free(ticket.index);
  if (ticket.offset == MemoryPlan::kUnplanned) return;
  on_loan_[static_cast<size_t>(ticket.index)] = 0;
  --live_count_;
}

void StepPlanner::refuse(Ticket& ticket) {
  if (ticket.offset == MemoryPlan::kUnplanned) return;
  on_loan_[static_cast<size_t>(ticket.index)] = 0;
  --live_count_;
  ticket.offset = MemoryPlan::kUnplanned;
  diverged_ = true;
}

}  // namespace lockstep
