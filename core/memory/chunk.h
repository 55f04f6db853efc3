#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/call_stack.h"
#include "core/base/phase.h"
#include "core/base/spin_lock.h"
#include "core/device/device_memory.h"
#include "core/memory/plan.h"
#include "core/tensor/event.h"

namespace lockstep {

class Heap;
class OperatorName;
struct Chunk;

/// Unit of chunk sizes and addresses; every DeviceMemory::block_unit is a multiple of it.
inline constexpr size_t kChunkUnit = 64;

enum class ChunkState : uint8_t {
  kSpare,     ///< a record that describes no memory
  kLive,      ///< allocated
  kPending,   ///< freed, but other streams still use it
  kWaiting,   ///< free, not yet joined: kept for the next request of its size
  kFree,      ///< free, joined with its free neighbours, in the bins
  kUnmapped,  ///< addresses without memory
  kLeaving,   ///< still mapped for work queued before, but its granules have moved elsewhere
  kHeld,      ///< a driver call is running on it, or it is the arena of a plan
};

/// An address range from one driver call: either an expandable range, whose granules are mapped one
/// by one, or plain memory. Chunks tile it.
struct Segment {
  Heap* heap = nullptr;
  uintptr_t address = 0;
  size_t size = 0;
  bool small = false;             ///< plain segment of the small pool
  size_t granularity = 0;         ///< bytes; 0: plain
  std::vector<Granule> granules;  ///< of a range, up to the last ever mapped; 0: unmapped
  Chunk* first = nullptr;
  Chunk* last = nullptr;

  bool is_range() const noexcept { return granularity != 0; }
  bool is_mapped(size_t index) const noexcept {
    return index < granules.size() && granules[index] != 0;
  }
  size_t granule_of(uintptr_t at) const noexcept { return (at - address) / granularity; }
};

/// Uses of a block by streams other than its own.
struct ChunkUses {
  std::vector<Stream> streams;  ///< from record_stream: events are recorded at the free
  std::vector<Event> events;    ///< events to reach before the block is reused
};

/// A run of bytes of a segment and its state. The ChunkTable makes the records; each belongs to one
/// heap for ever and changes under that heap's lock.
struct Chunk {
  uintptr_t address = 0;
  size_t size = 0;
  Heap* heap = nullptr;
  /// Low 32 bits: index in the ChunkTable, from 1. High bits: number of the last allocation, which
  /// tells a current handle from a stale one.
  uint64_t handle = 0;
  ChunkState state = ChunkState::kSpare;
  bool small = false;    ///< request of at most 1 MiB
  bool watched = false;  ///< its free needs the slow path
  Phase phase = Phase::kForward;
  size_t requested = 0;       ///< bytes, before rounding
  Chunk* bin_next = nullptr;  ///< in bins, waiting lists, among unmapped chunks and spare records
  Chunk* bin_previous = nullptr;

  Chunk* previous = nullptr;  ///< neighbour by address
  Chunk* next = nullptr;
  Segment* segment = nullptr;

  const OperatorName* op = nullptr;
  const std::string* module = nullptr;  ///< interned; null outside modules
  std::unique_ptr<CallStack> stack;
  std::unique_ptr<ChunkUses> uses;
  StepPlanner::Ticket ticket;
  bool planned = false;   ///< lies in a plan's arena, outside the list that tiles the segment
  uint64_t sequence = 0;  ///< number of its allocation, while history is on
  uint64_t freed_at = 0;  ///< value of Heap::searches when it became free

  uintptr_t end() const noexcept { return address + size; }
  static constexpr uint64_t kLoan = uint64_t{1} << 32;
  /// Whether it has memory, which no other chunk has.
  bool has_memory() const noexcept {
    return state != ChunkState::kUnmapped && state != ChunkState::kLeaving;
  }
  bool is_whole_segment() const noexcept { return previous == nullptr && next == nullptr; }
};

/// All chunk records of an allocator, by index, so that a handle that is not of this allocator is
/// detected. Records never move and are never deleted. Thread-safe.
class ChunkTable {
 public:
  static constexpr uint32_t kBatch = 64;

  ChunkTable() = default;
  ~ChunkTable();
  ChunkTable(const ChunkTable&) = delete;
  ChunkTable& operator=(const ChunkTable&) = delete;

  /// The record of that index; null if there is none.
  Chunk* find(uint32_t index) const noexcept {
    if (index >= made_.load(std::memory_order_acquire)) return nullptr;
    return at(index);
  }
  /// Makes `kBatch` spare records of `heap`, linked by bin_next.
  Chunk* make(Heap* heap);
  void lock() LS_ACQUIRE(lock_) { lock_.lock(); }
  void unlock() LS_RELEASE(lock_) { lock_.unlock(); }

 private:
  static constexpr int kFirstPage = 8;  // log2 of its records; each page has twice as many as the
                                        // one before
  static constexpr int kPages = 32 - kFirstPage;

  Chunk* at(uint32_t index) const noexcept {
    const int page = std::bit_width((index >> kFirstPage) + 1) - 1;
    const uint32_t begin = ((1u << page) - 1) << kFirstPage;
    return pages_[static_cast<size_t>(page)].load(std::memory_order_relaxed) + (index - begin);
  }

  std::array<std::atomic<Chunk*>, kPages> pages_{};
  std::atomic<uint32_t> made_ = 0;
  SpinLock lock_;  ///< held to make records; `find` reads without it
};

}  // namespace lockstep
