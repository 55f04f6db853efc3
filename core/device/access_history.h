#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/call_stack.h"
#include "core/base/function_ref.h"
#include "core/tensor/overlap.h"

namespace lockstep {

/// Events of each stream that happened before some point, by the stream's index: the vector clocks
/// of Fidge (1988) and Mattern (1989).
class VectorClock {
 public:
  uint64_t operator[](size_t stream) const { return stream < ticks_.size() ? ticks_[stream] : 0; }
  /// What happened before either.
  void join(const VectorClock& other);
  /// One more of `stream`; returns its number, from 1.
  uint64_t tick(size_t stream);

 private:
  std::vector<uint64_t> ticks_;
};

/// A block of memory between allocate and free.
struct Tenant {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  size_t owner = 0;           ///< its own stream's index
  VectorClock at_allocation;  ///< what had happened before, for its own stream
  bool freed = false;
};

/// A use of memory by something that was queued on a stream.
struct MemoryUse {
  size_t stream = 0;  ///< index
  uint64_t tick = 0;  ///< of that stream
  std::string_view op;
  bool written = false;
  bool after_free = false;
  Footprint footprint;
  std::shared_ptr<const Tenant> tenant;    ///< null where nobody said what was allocated
  std::shared_ptr<const CallStack> stack;  ///< null unless asked for

  bool happened_before(const VectorClock& clock) const { return tick <= clock[stream]; }
};
using MemoryUseRef = std::shared_ptr<const MemoryUse>;

/// Who used which bytes, as far as it can still matter: of uses that one after the other are
/// ordered, the last. Not thread-safe.
class AccessHistory {
 public:
  /// Calls `visit(use, begin, end)` for uses kept of bytes between begin and end of the footprint,
  /// until it returns true. Whether strided uses share a byte with it is not checked.
  void each_use(const Footprint& footprint,
                FunctionRef<bool(const MemoryUseRef&, uintptr_t, uintptr_t)> visit) const;
  /// `now`: what happened before the use.
  void add(const MemoryUseRef& use, const VectorClock& now);
  /// Drops uses that everything still to come is ordered after.
  void forget(const VectorClock& done);
  /// Ranges that it tells apart.
  size_t size() const { return cells_.size(); }

 private:
  struct Cell {
    uintptr_t end;
    std::vector<MemoryUseRef> uses;  ///< oldest first
  };
  using Cells = std::map<uintptr_t, Cell>;

  /// Makes a cell begin at `address` where one spans it; returns the first at or after it.
  Cells::iterator split(uintptr_t address);
  static void note(Cell& cell, const MemoryUseRef& use, const VectorClock& now);

  Cells cells_;  ///< by begin; they do not overlap
};

}  // namespace lockstep
