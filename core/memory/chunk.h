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

/// Every size and address is a multiple of this.
inline constexpr size_t kChunkUnit = 512;

enum class ChunkState : uint8_t {
  kSpare,     ///< a record that describes no memory
  kLive,      ///< on loan
  kPending,   ///< given back, but other streams use it
  kWaiting,   ///< free, kept as it is for the next request of its size
  kFree,      ///< free, joined with its free neighbours, in the bins
  kUnmapped,  ///< addresses without memory
  kHeld,      ///< the driver is at work on it, or it is the arena of a plan
};

/// Addresses that one call of the driver gave: a range whose granules are mapped one by one, or
/// memory that came as it is. Chunks tile it.
struct Segment {
  Heap* heap = nullptr;
  uintptr_t address = 0;
  size_t size = 0;
  bool small = false;             ///< plain, for the small pool
  size_t granularity = 0;         ///< 0: plain
  std::vector<Granule> granules;  ///< of a range, up to the last that was ever mapped; 0: none
  Chunk* first = nullptr;
  Chunk* last = nullptr;

  bool is_range() const noexcept { return granularity != 0; }
  bool is_mapped(size_t index) const noexcept {
    return index < granules.size() && granules[index] != 0;
  }
  size_t granule_of(uintptr_t at) const noexcept { return (at - address) / granularity; }
};

/// What other streams do with a block.
struct ChunkUses {
  std::vector<Stream> streams;  ///< record_stream: events are made when the block is given back
  std::vector<Event> events;    ///< to be reached before the block serves its own stream again
};

/// A run of bytes of a segment and who has it. Records are made by the ChunkTable, belong to one
/// heap for ever, and change under that heap's lock.
struct Chunk {
  uintptr_t address = 0;
  size_t size = 0;
  Heap* heap = nullptr;
  /// Its number in the ChunkTable, from 1, below the number of its last loan, which tells a handle
  /// of today from an old one.
  uint64_t handle = 0;
  ChunkState state = ChunkState::kSpare;
  bool small = false;    ///< was asked for with at most 1 MiB
  bool watched = false;  ///< giving it back takes more than putting it away
  Phase phase = Phase::kForward;
  size_t requested = 0;       ///< bytes, before rounding
  Chunk* bin_next = nullptr;  ///< in bins, waiting lists and among spare records
  Chunk* bin_previous = nullptr;

  Chunk* previous = nullptr;  ///< by address
  Chunk* next = nullptr;
  Segment* segment = nullptr;

  const OperatorName* op = nullptr;
  const std::string* module = nullptr;  ///< interned; null outside modules
  std::unique_ptr<CallStack> stack;
  std::unique_ptr<ChunkUses> uses;
  StepPlanner::Ticket ticket;
  bool planned = false;   ///< lies in a plan's arena, apart from the chunks that tile the segment
  uint64_t sequence = 0;  ///< number of its loan, while history is on
  uint64_t freed_at = 0;  ///< searches of the heap when it became free

  uintptr_t end() const noexcept { return address + size; }
  static constexpr uint64_t kLoan = uint64_t{1} << 32;
  uint32_t index() const noexcept { return static_cast<uint32_t>(handle); }
  bool is_whole_segment() const noexcept { return previous == nullptr && next == nullptr; }
};

/// All chunk records of an allocator, found by number, so that a handle from elsewhere is seen to
/// be none of ours. Records never move and never go. Thread-safe.
class ChunkTable {
 public:
  static constexpr uint32_t kBatch = 64;

  ChunkTable() = default;
  ~ChunkTable();
  ChunkTable(const ChunkTable&) = delete;
  ChunkTable& operator=(const ChunkTable&) = delete;

  /// Null when there is no such record.
  Chunk* find(uint32_t index) const noexcept {
    if (index >= made_.load(std::memory_order_acquire)) return nullptr;
    return at(index);
  }
  /// `kBatch` spare records of `heap`, linked by bin_next.
  Chunk* make(Heap* heap);
  void lock() { lock_.lock(); }
  void unlock() { lock_.unlock(); }

 private:
  static constexpr int kFirstPage = 8;  // log2 of its records; each page is twice the one before
  static constexpr int kPages = 32 - kFirstPage;

  Chunk* at(uint32_t index) const noexcept {
    const int page = std::bit_width((index >> kFirstPage) + 1) - 1;
    const uint32_t begin = ((1u << page) - 1) << kFirstPage;
    return pages_[static_cast<size_t>(page)].load(std::memory_order_relaxed) + (index - begin);
  }

  std::array<std::atomic<Chunk*>, kPages> pages_{};
  std::atomic<uint32_t> made_ = 0;
  SpinLock lock_;
};

}  // namespace lockstep
