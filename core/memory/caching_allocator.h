#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device/device_memory.h"
#include "core/memory/options.h"
#include "core/memory/snapshot.h"
#include "core/memory/stats.h"
#include "core/tensor/allocator.h"

namespace lockstep {

/// A set of blocks apart from all others, for graph capture and for users' own pools. 0 is the
/// default pool.
using PoolId = uint64_t;

/// The layout of a pool's blocks at one moment, for CachingAllocator::restore.
struct PoolState;

/// Keeps freed memory of one device for the next request of its stream, so that a step whose shapes
/// repeat makes no driver call. docs/memory.md tells how.
///
/// Requests are rounded to 512 bytes; up to 1 MiB they are served from the small pool, else from
/// the large one. A freed block joins its free neighbours and serves its own stream again at once;
/// a block that other streams use (record_stream, record_use) serves it after them. Which block is
/// taken depends on the order of calls alone, unless options say kPoll.
///
/// Thread-safe. Requests and frees of different streams share no lock while cached memory serves
/// them.
class CachingAllocator final : public Allocator {
 public:
  /// `memory` must outlive it.
  CachingAllocator(Device device, DeviceMemory& memory, AllocatorOptions options = {});
  /// Gives everything back. Blocks that are still on loan are lost.
  ~CachingAllocator() override;
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Under AddressSanitizer: from now on nobody may touch bytes that are not on loan, and blocks
  /// are no larger than what was asked for (poison.h). For devices whose work with a block is over
  /// when it is given back; before the first request. In other builds without effect.
  void forbid_idle_memory();

  /// Throws OutOfMemoryError after everything that could help was tried; the message has budget,
  /// live, cached and fragmented bytes, the largest holders and what would help.
  Block allocate(size_t bytes, const Stream& stream) override;
  /// Aborts on nothing: a block that is not on loan from here is ignored and counted, see
  /// `wrong_frees`.
  void free(const Block& block) noexcept override;
  void record_stream(const Block& block, const Stream& stream) override;
  void record_use(const Block& block, const Stream& stream) override;
  /// The stream's cached memory, and its blocks that are still on loan, are those of the next new
  /// stream.
  void stream_destroyed(const Stream& stream) noexcept override;
  MemoryStats stats() const override;
  void reset_peak() override;

  /// For pointers that other libraries hold. Throws DeviceError for an address that is not on loan.
  void* raw_alloc(size_t bytes, const Stream& stream);
  void raw_delete(void* address);

  Device device() const noexcept { return device_; }
  AllocatorOptions options() const;
  /// Applies to what is allocated from now on. Throws ConfigError for values out of range.
  void set_options(const AllocatorOptions& options);
  /// Bytes that may be reserved at most.
  size_t budget() const;
  /// Frees of blocks that were not on loan: each is a bug of the caller.
  int64_t wrong_frees() const;

  /// Gives cached memory back to the device, after waiting for the work that uses it.
  void empty_cache();

  DeviceMemoryStats memory_stats() const;
  void reset_peak_memory_stats();
  void reset_accumulated_memory_stats();

  // Pools. While a thread is inside `begin_pool` .. `end_pool`, its requests are served from the
  // pool: see PoolGuard.
  PoolId create_pool();
  /// The pool's memory goes back when its last block does. Throws DeviceError for an unknown pool.
  void release_pool(PoolId pool);
  /// How many blocks of the pool are on loan.
  int64_t live_blocks(PoolId pool) const;
  /// What blocks the pool has, on loan and free, of every stream.
  std::shared_ptr<const PoolState> checkpoint(PoolId pool) const;
  /// Brings the pool back to `state`: blocks that were on loan then are on loan again, at their
  /// addresses, and are returned; blocks that are on loan now and were not then are taken back.
  /// Throws DeviceError when the pool has lost a segment since.
  std::vector<Block> restore(PoolId pool, const PoolState& state);

  // Out of memory.
  /// Called, without any lock, when cached memory does not serve a request; true says that it freed
  /// something. For whoever keeps memory that he could do without. Returns a number for `remove`.
  int add_free_memory_callback(std::function<bool()> callback);
  void remove_free_memory_callback(int number);
  /// Called with the error's text before it is thrown.
  int add_oom_observer(std::function<void(size_t bytes, const std::string& report)> observer);
  void remove_oom_observer(int number);

  // Seeing.
  MemorySnapshot snapshot() const;
  /// Keeps the last `entries` things that happen, with call stacks if `stacks`; 0 switches it off.
  void record_memory_history(size_t entries, bool stacks = true);
  /// Adds an entry of the user's to the history.
  void note(const std::string& label);
  /// The blocks that were on loan when allocated bytes were at their peak, by operator and module;
  /// empty unless history is on.
  std::vector<BlockInfo> blocks_at_peak() const;

  // Planned mode (core/memory/plan.h).
  /// Says that a training step begins on `stream`. With planning on, the first whole step is
  /// recorded and packed; later steps are served from the plan by index.
  void mark_step(const Stream& stream);
  void set_planned(bool planned);

  /// Around fork(): no other thread holds a lock in the child then.
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
  PoolGuard(CachingAllocator& allocator, PoolId pool);
  ~PoolGuard();
  PoolGuard(const PoolGuard&) = delete;
  PoolGuard& operator=(const PoolGuard&) = delete;

 private:
  CachingAllocator* saved_allocator_;
  PoolId saved_pool_;
};

/// The caching allocator of a device. Throws DeviceError where memory comes from another allocator.
CachingAllocator& caching_allocator(Device device);

}  // namespace lockstep
