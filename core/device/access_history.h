#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/call_stack.h"
#include "core/base/function_ref.h"
#include "core/tensor/memory_overlap.h"

namespace lockstep {

/// Number of events of each stream that happened before some point, by stream index: the vector
/// clocks of Fidge (1988) and Mattern (1989).
class VectorClock {
 public:
  uint64_t operator[](size_t stream) const { return stream < ticks_.size() ? ticks_[stream] : 0; }
  /// Becomes the elementwise maximum of both clocks.
  void join(const VectorClock& other);
  /// Counts one more event of `stream`; returns its number, from 1.
  uint64_t tick(size_t stream);

 private:
  std::vector<uint64_t> ticks_;
};

/// A block of memory from its allocation to its free.
struct Allocation {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  size_t owner = 0;           ///< index of the stream it was allocated for
  VectorClock at_allocation;  ///< what had happened before, on the owner stream
  bool freed = false;
};

/// A read or write of memory by work queued on a stream.
struct MemoryUse {
  size_t stream = 0;  ///< index of the stream
  uint64_t tick = 0;  ///< the stream's event number
  std::string_view op;
  bool written = false;
  bool after_free = false;
  Footprint footprint;
  std::shared_ptr<const Allocation> allocation;  ///< null if no allocation covers it
  std::shared_ptr<const CallStack> stack;        ///< null unless stacks are recorded

  bool happened_before(const VectorClock& clock) const { return tick <= clock[stream]; }
};
using MemoryUseRef = std::shared_ptr<const MemoryUse>;

/// The uses of each byte that can still matter: of uses that are ordered one after the other, only
/// the last is kept. Not thread-safe.
class AccessHistory {
 public:
  /// Calls `visit(use, begin, end)` for the kept uses of bytes in the footprint's range, until it
  /// returns true. Does not check whether strided uses share a byte with the footprint.
  void each_use(const Footprint& footprint,
                FunctionRef<bool(const MemoryUseRef&, uintptr_t, uintptr_t)> visit) const;
  /// Adds a use. `now`: what happened before it.
  void add(const MemoryUseRef& use, const VectorClock& now);
  /// Drops uses that happened before `done`: all later work is ordered after them.
  void forget(const VectorClock& done);
  /// Number of byte ranges that are tracked separately.
  size_t size() const { return cells_.size(); }

 private:
  struct Cell {
    uintptr_t end;
    std::vector<MemoryUseRef> uses;  ///< oldest first
  };
  using Cells = std::map<uintptr_t, Cell>;

  /// Splits a cell that spans `address` in two; returns the first cell at or after `address`.
  Cells::iterator split(uintptr_t address);
  static void note(Cell& cell, const MemoryUseRef& use, const VectorClock& now);

  Cells cells_;  ///< by begin address; they do not overlap
};

}  // namespace lockstep
