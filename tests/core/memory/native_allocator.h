#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/device/device_memory.h"
#include "core/memory/units.h"
#include "core/tensor/allocator.h"

namespace lockstep {

/// Model of PyTorch's native caching allocator for blocks that are used on one stream only: the
/// policy that our allocator with plain segments must match, and the structure that it must outrun.
///
/// One recursive mutex; free blocks in ordered sets by (stream, size, address), one set for
/// requests of up to 1 MiB and one for larger ones; sizes in 512 bytes; segments of 2 MiB, of
/// 20 MiB for requests of 1 to 10 MiB, of whole 2 MiB for larger ones; the smallest block that
/// fits, split when 512 bytes are left (large ones: more than 1 MiB); free neighbours join at once;
/// when the device has no more, segments that are wholly free are released and the request is tried
/// again. Blocks are found by address in 67 hash maps, each with a mutex of its own. Statistics are
/// kept for both pools and their sum.
class NativeAllocator final : public Allocator {
 public:
  /// `memory` must outlive it.
  explicit NativeAllocator(DeviceMemory& memory) : memory_(memory) {}
  /// Blocks that are still live are leaked.
  ~NativeAllocator() override {
    for (Pool* pool : {&small_, &large_}) {
      for (Chunk* chunk : pool->free_chunks) {
        if (!is_split(*chunk)) memory_.release(chunk->data, chunk->size);
        delete chunk;
      }
    }
  }
  NativeAllocator(const NativeAllocator&) = delete;
  NativeAllocator& operator=(const NativeAllocator&) = delete;

  Block allocate(size_t bytes, const Stream& stream) override {
    if (bytes == 0) return {nullptr, 0, nullptr, this};
    Chunk* chunk = take(bytes, stream.id);
    on_loan_.insert(chunk->data, chunk);
    return {chunk->data, chunk->size, nullptr, this};
  }

  void free(const Block& block) noexcept override {
    if (block.data == nullptr) return;
    give_back(static_cast<Chunk*>(on_loan_.remove(block.data)));
  }

  /// Not modelled.
  void record_stream(const Block&, const Stream&) override {
    throw InternalError("[native] this model knows no blocks that streams share.");
  }

  void empty_cache() {
    const std::lock_guard guard(mutex_);
    release_cached();
  }

  MemoryStats stats() const override {
    const std::lock_guard guard(mutex_);
    return {.allocated = allocated_bytes_[kAll].current,
            .peak_allocated = allocated_bytes_[kAll].peak,
            .reserved = reserved_bytes_[kAll].current,
            .allocations = allocations_[kAll].allocated,
            .system_calls = driver_calls_};
  }
  void reset_peak() override {
    const std::lock_guard guard(mutex_);
    allocated_bytes_[kAll].peak = allocated_bytes_[kAll].current;
  }
  int64_t peak_reserved() const {
    const std::lock_guard guard(mutex_);
    return reserved_bytes_[kAll].peak;
  }

 private:
  static constexpr size_t kGranule = 512;
  static constexpr size_t kSmallRequest = kMiB;
  static constexpr size_t kSmallSegment = 2 * kMiB;
  static constexpr size_t kMiddleRequest = 10 * kMiB;
  static constexpr size_t kMiddleSegment = 20 * kMiB;

  struct Pool;
  /// A run of bytes of a segment. Chunks tile their segment and are linked in order of address.
  struct Chunk {
    int32_t stream = 0;
    size_t size = 0;
    size_t requested = 0;
    std::byte* data = nullptr;
    Pool* pool = nullptr;
    bool allocated = false;
    Chunk* previous = nullptr;
    Chunk* next = nullptr;
  };
  struct BySize {
    bool operator()(const Chunk* a, const Chunk* b) const {
      return std::tie(a->stream, a->size, a->data) < std::tie(b->stream, b->size, b->data);
    }
  };
  struct Pool {
    int index = 0;
    std::set<Chunk*, BySize> free_chunks;
  };

  struct Count {
    int64_t current = 0, peak = 0, allocated = 0, freed = 0;
    void change(int64_t by) {
      current += by;
      peak = std::max(peak, current);
      (by > 0 ? allocated : freed) += by > 0 ? by : -by;
    }
  };
  static constexpr int kAll = 2;  // index of the sum; the pools are 0 and 1
  using Counts = std::array<Count, 3>;
  static void change(Counts& counts, const Pool& pool, size_t by, int sign) {
    const int64_t signed_by = sign * static_cast<int64_t>(by);
    counts[static_cast<size_t>(pool.index)].change(signed_by);
    counts[kAll].change(signed_by);
  }

  /// Maps addresses to chunks by open addressing, in 67 shards that reduce lock contention.
  class AddressMap {
   public:
    void insert(const void* key, void* value) {
      Shard& shard = shards_[hash(key) % kShards];
      const std::lock_guard guard(shard.mutex);
      if (2 * (shard.used + 1) > shard.slots.size()) grow(shard);
      put(shard, {key, value});
      ++shard.used;
    }
    void* remove(const void* key) {
      Shard& shard = shards_[hash(key) % kShards];
      const std::lock_guard guard(shard.mutex);
      const size_t mask = shard.slots.size() - 1;
      size_t at = place(key) & mask;
      while (shard.slots[at].key != key) at = (at + 1) & mask;
      void* value = shard.slots[at].value;
      --shard.used;
      for (size_t hole = at;;) {  // backward-shift deletion: moves later entries into the hole
        shard.slots[hole] = {};
        do {
          at = (at + 1) & mask;
          if (shard.slots[at].key == nullptr) return value;
        } while (((at - place(shard.slots[at].key)) & mask) < ((at - hole) & mask));
        shard.slots[hole] = shard.slots[at];
        hole = at;
      }
    }

   private:
    static constexpr size_t kShards = 67;
    struct Slot {
      const void* key = nullptr;
      void* value = nullptr;
    };
    struct alignas(64) Shard {
      std::mutex mutex;
      std::vector<Slot> slots = std::vector<Slot>(16);
      size_t used = 0;
    };
    static size_t hash(const void* key) {
      return reinterpret_cast<uintptr_t>(key) / kGranule * 0x9E3779B97F4A7C15u >> 16;
    }
    static size_t place(const void* key) { return hash(key) / kShards; }
    static void put(Shard& shard, const Slot& slot) {
      const size_t mask = shard.slots.size() - 1;
      size_t at = place(slot.key) & mask;
      while (shard.slots[at].key != nullptr) at = (at + 1) & mask;
      shard.slots[at] = slot;
    }
    static void grow(Shard& shard) {
      const std::vector<Slot> old = std::move(shard.slots);
      shard.slots = std::vector<Slot>(2 * old.size());
      for (const Slot& slot : old) {
        if (slot.key != nullptr) put(shard, slot);
      }
    }
    std::array<Shard, kShards> shards_;
  };

  static size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
  static size_t segment_size(size_t size) {
    if (size <= kSmallRequest) return kSmallSegment;
    if (size < kMiddleRequest) return kMiddleSegment;
    return rounded(size, kSmallSegment);
  }

  Chunk* take(size_t bytes, int32_t stream) {
    const std::lock_guard guard(mutex_);
    if (bytes > ~size_t{0} / 2) out_of_memory(bytes);
    const size_t size = rounded(bytes, kGranule);
    Pool& pool = size <= kSmallRequest ? small_ : large_;
    Chunk* chunk = find(pool, size, stream);
    if (chunk == nullptr) chunk = add_segment(pool, size, stream);
    if (chunk == nullptr) {
      release_cached();
      chunk = add_segment(pool, size, stream);
    }
    if (chunk == nullptr) out_of_memory(bytes);
    if (is_split(*chunk)) count_split(*chunk, -1);
    const size_t left = chunk->size - size;
    if (&pool == &small_ ? left >= kGranule : left > kSmallRequest) split(*chunk, size);
    chunk->allocated = true;
    chunk->requested = bytes;
    count_loan(*chunk, 1);
    return chunk;
  }

  static Chunk* find(Pool& pool, size_t size, int32_t stream) {
    Chunk key{.stream = stream, .size = size};
    const auto found = pool.free_chunks.lower_bound(&key);
    if (found == pool.free_chunks.end() || (*found)->stream != stream) return nullptr;
    Chunk* chunk = *found;
    pool.free_chunks.erase(found);
    return chunk;
  }

  Chunk* add_segment(Pool& pool, size_t size, int32_t stream) {
    const size_t bytes = segment_size(size);
    void* data = memory_.allocate(bytes);
    ++driver_calls_;
    if (data == nullptr) return nullptr;
    change(segments_, pool, 1, 1);
    change(reserved_bytes_, pool, bytes, 1);
    return new Chunk{
        .stream = stream, .size = bytes, .data = static_cast<std::byte*>(data), .pool = &pool};
  }

  /// Leaves `size` bytes in the chunk; the rest is free.
  void split(Chunk& chunk, size_t size) {
    auto* rest = new Chunk{.stream = chunk.stream,
                           .size = chunk.size - size,
                           .data = chunk.data + size,
                           .pool = chunk.pool,
                           .previous = &chunk,
                           .next = chunk.next};
    if (chunk.next != nullptr) chunk.next->previous = rest;
    chunk.next = rest;
    chunk.size = size;
    chunk.pool->free_chunks.insert(rest);
    count_split(*rest, 1);
  }

  void give_back(Chunk* chunk) {
    const std::lock_guard guard(mutex_);
    chunk->allocated = false;
    count_loan(*chunk, -1);
    Pool& pool = *chunk->pool;
    if (Chunk* next = chunk->next; next != nullptr && !next->allocated) {
      pool.free_chunks.erase(next);
      count_split(*next, -1);
      join(*chunk, *next);
    }
    if (Chunk* previous = chunk->previous; previous != nullptr && !previous->allocated) {
      pool.free_chunks.erase(previous);
      count_split(*previous, -1);
      join(*previous, *chunk);
      chunk = previous;
    }
    pool.free_chunks.insert(chunk);
    if (is_split(*chunk)) count_split(*chunk, 1);
  }

  static void join(Chunk& left, Chunk& right) {
    left.size += right.size;
    left.next = right.next;
    if (right.next != nullptr) right.next->previous = &left;
    delete &right;
  }

  void release_cached() {
    for (Pool* pool : {&large_, &small_}) {
      for (auto at = pool->free_chunks.begin(); at != pool->free_chunks.end();) {
        Chunk* chunk = *at;
        if (is_split(*chunk)) {
          ++at;
          continue;
        }
        at = pool->free_chunks.erase(at);
        memory_.release(chunk->data, chunk->size);
        ++driver_calls_;
        change(segments_, *pool, 1, -1);
        change(reserved_bytes_, *pool, chunk->size, -1);
        delete chunk;
      }
    }
  }

  static bool is_split(const Chunk& chunk) {
    return chunk.previous != nullptr || chunk.next != nullptr;
  }
  void count_split(const Chunk& chunk, int sign) {
    change(inactive_split_, *chunk.pool, 1, sign);
    change(inactive_split_bytes_, *chunk.pool, chunk.size, sign);
  }
  void count_loan(const Chunk& chunk, int sign) {
    const Pool& pool = *chunk.pool;
    change(allocations_, pool, 1, sign);
    change(allocated_bytes_, pool, chunk.size, sign);
    change(active_, pool, 1, sign);
    change(active_bytes_, pool, chunk.size, sign);
    change(requested_bytes_, pool, chunk.requested, sign);
  }

  [[noreturn]] void out_of_memory(size_t bytes) const {
    throw OutOfMemoryError("[native] no " + std::to_string(bytes) + " bytes are left.");
  }

  DeviceMemory& memory_;
  mutable std::recursive_mutex mutex_;
  Pool small_{.index = 0, .free_chunks = {}};
  Pool large_{.index = 1, .free_chunks = {}};
  AddressMap on_loan_;
  Counts allocations_, segments_, active_, inactive_split_;
  Counts allocated_bytes_, reserved_bytes_, active_bytes_, inactive_split_bytes_, requested_bytes_;
  int64_t driver_calls_ = 0;
};

}  // namespace lockstep
