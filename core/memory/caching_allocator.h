#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/scoped_value.h"
#include "core/device/device_memory.h"
#include "core/memory/options.h"
#include "core/memory/snapshot.h"
#include "core/memory/stats.h"
#include "core/tensor/allocator.h"

namespace lockstep {

/// Identifies a pool: memory that is kept apart from all other pools, for graph capture and for
/// users. 0 is the default pool.
using PoolId = uint64_t;

/// The layout of a pool's blocks at one moment, for CachingAllocator::restore.
struct PoolState;

/// Keeps freed memory of one device for the next request of its stream, so that a step whose shapes
/// repeat makes no driver call. docs/memory.md describes how it works.
///
/// Requests are rounded to DeviceMemory::block_unit (512 bytes, on `cpu` 64); up to 1 MiB they are
/// served from the small pool, else from the large one. A freed block joins its free neighbours and
/// can serve its own stream again at once; a block that other streams use (record_stream,
/// record_use) serves it after they are done. Which block is taken depends only on the order of
/// calls, unless stream_reuse is kPoll.
///
/// Thread-safe. Requests and frees of different streams share no lock as long as cached memory
/// serves them.
class CachingAllocator final : public Allocator {
 public:
  /// `memory` must outlive the allocator. Throws ConfigError for options out of range.
  CachingAllocator(Device device, DeviceMemory& memory, AllocatorOptions options = {});
  /// Returns all memory to the device. Blocks that are still allocated become invalid.
  ~CachingAllocator() override;
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Under AddressSanitizer: poisons all bytes that are not allocated from now on, and makes blocks
  /// exactly as large as requested (poison.h). Only for devices that no longer use a block when it
  /// is freed. Call before the first request. No effect in other builds.
  void forbid_idle_memory();

  /// Throws OutOfMemoryError when every fallback has failed; the message gives budget, live, cached
  /// and fragmented bytes, the largest holders and what would help.
  Block allocate(size_t bytes, const Stream& stream) override;
  /// Ignores and counts a block that is not allocated from here, see `wrong_frees`.
  void free(const Block& block) noexcept override;
  void record_stream(const Block& block, const Stream& stream) override;
  void record_use(const Block& block, const Stream& stream) override;
  /// Keeps the stream's cached and allocated blocks for the next new stream.
  void stream_destroyed(const Stream& stream) noexcept override;
  MemoryStats stats() const override;
  void reset_peak() override;

  /// Allocates memory for libraries that keep plain pointers; null for 0 bytes.
  void* raw_alloc(size_t bytes, const Stream& stream);
  /// Frees what raw_alloc returned; null is ignored. Throws DeviceError for any other address.
  void raw_delete(void* address);

  Device device() const noexcept { return device_; }
  AllocatorOptions options() const;
  /// Applies to later requests. Throws ConfigError for values out of range.
  void set_options(const AllocatorOptions& options);
  /// Upper limit of reserved bytes.
  size_t budget() const;
  /// Number of frees of blocks that were not allocated: each is a bug of the caller.
  int64_t wrong_frees() const;

  /// Returns cached memory to the device, after waiting for the work that uses it.
  void empty_cache();

  DeviceMemoryStats memory_stats() const;
  void reset_peak_memory_stats();
  void reset_accumulated_memory_stats();

  // Pools. A PoolGuard directs the requests of a thread to a pool.
  PoolId create_pool();
  /// Returns the pool's memory to the device once its last block is freed. Throws DeviceError for
  /// an unknown pool.
  void release_pool(PoolId pool);
  /// Number of allocated blocks of the pool.
  int64_t live_blocks(PoolId pool) const;
  /// The layout of the pool: its blocks, allocated and free, of every stream.
  std::shared_ptr<const PoolState> checkpoint(PoolId pool) const;
  /// Restores the layout `state`: allocates the blocks that were allocated then, at their
  /// addresses, and returns them; frees blocks that were allocated since. Throws DeviceError if the
  /// pool has lost a segment since.
  std::vector<Block> restore(PoolId pool, const PoolState& state);

  // Out of memory.
  /// Adds a function that frees memory that the program can do without, and returns true if it
  /// freed any. It is called without a lock when cached memory does not serve a request. Returns
  /// the number for remove_free_memory_callback.
  int add_free_memory_callback(std::function<bool()> callback);
  void remove_free_memory_callback(int number);
  /// Adds a function that is called with the text of an OutOfMemoryError before it is thrown.
  /// Returns the number for remove_oom_observer.
  int add_oom_observer(std::function<void(size_t bytes, const std::string& report)> observer);
  void remove_oom_observer(int number);

  // Observation.
  MemorySnapshot snapshot() const;
  /// Keeps the last `entries` events, with call stacks if `stacks`; 0 switches it off.
  void record_memory_history(size_t entries, bool stacks = true);
  /// Makes requests and frees moments of a running profile (core/base/spans/span.h), of kind
  /// kMemory: their bytes are those that allocated_bytes changes by, their number is the address.
  void record_spans(bool on);
  /// Adds an entry with this label to the history.
  void note(const std::string& label);
  /// The blocks that were live when allocated bytes were at their peak, by operator and module;
  /// empty unless history is on.
  std::vector<BlockInfo> blocks_at_peak() const;

  // Planned mode (core/memory/plan.h).
  /// Marks the begin of a training step on `stream`, so that its blocks get the places that those
  /// of the step before got. With planning on, the first whole step is recorded and packed; the
  /// plan serves later steps by index.
  void mark_step(const Stream& stream);
  void set_planned(bool planned);

  /// Takes and releases every lock around fork(), so that none is held by a thread that the child
  /// does not have.
  void lock_all();
  void unlock_all();

 private:
  friend class PoolGuard;
  struct State;
  Device device_;
  std::unique_ptr<State> state_;
};

/// While alive, this thread's requests on the allocator's device are served from `pool`.
class PoolGuard {
 public:
  [[nodiscard]] PoolGuard(CachingAllocator& allocator, PoolId pool);

 private:
  ScopedValue<std::pair<CachingAllocator*, PoolId>> pool_;
};

/// The caching allocator of a device. Throws DeviceError if the device has another allocator.
CachingAllocator& caching_allocator(Device device);

}  // namespace lockstep
