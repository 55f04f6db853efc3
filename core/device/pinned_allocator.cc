#include "core/device/pinned_allocator.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/device/device_runtime.h"
#include "core/tensor/event.h"

namespace lockstep {

namespace {

constexpr size_t kLargest = size_t{1} << 46;  // more than any machine has, and safe to round up

struct PinnedBlock {
  std::byte* address = nullptr;
  size_t bytes = 0;
  std::vector<Event> uses;      ///< copies that may still run
  std::vector<Stream> streams;  ///< streams whose work at `free` counts as a use

  bool is_used() {
    while (!uses.empty() && uses.back().query()) uses.pop_back();
    return !uses.empty();
  }
};

size_t rounded(size_t bytes) {
  return std::bit_ceil(std::max(bytes, static_cast<size_t>(sysconf(_SC_PAGESIZE))));
}

void add_use(PinnedBlock& block, const Stream& stream) {
  const auto known = std::ranges::find(block.uses, stream, &Event::stream);
  if (known != block.uses.end()) return known->record(stream);
  block.uses.emplace_back().record(stream);
}

}  // namespace

struct PinnedAllocator::State {
  explicit State(DeviceMemory& m) : memory(m) {}

  /// Takes a kept block of this size that no copy uses; null if there is none.
  std::unique_ptr<PinnedBlock> take_kept(size_t bytes) LS_REQUIRES(mutex);
  std::unique_ptr<PinnedBlock> make(size_t bytes) LS_REQUIRES(mutex);
  void release_kept(bool wait) LS_REQUIRES(mutex);
  PinnedBlock* find(const void* address) const LS_REQUIRES(mutex);

  DeviceMemory& memory;
  mutable Mutex mutex;
  std::map<const std::byte*, std::unique_ptr<PinnedBlock>> on_loan LS_GUARDED_BY(mutex);
  std::map<size_t, std::deque<std::unique_ptr<PinnedBlock>>> kept
      LS_GUARDED_BY(mutex);  ///< by size, oldest first
  MemoryStats stats LS_GUARDED_BY(mutex);
};

std::unique_ptr<PinnedBlock> PinnedAllocator::State::take_kept(size_t bytes) {
  std::deque<std::unique_ptr<PinnedBlock>>& blocks = kept[bytes];
  const auto found =
      std::ranges::find_if(blocks, [](const auto& block) { return !block->is_used(); });
  if (found == blocks.end()) return nullptr;
  std::unique_ptr<PinnedBlock> block = std::move(*found);
  blocks.erase(found);
  return block;
}

std::unique_ptr<PinnedBlock> PinnedAllocator::State::make(size_t bytes) {
  ++stats.system_calls;
  void* const address = memory.allocate_pinned(bytes);
  if (address == nullptr) return nullptr;
  auto block = std::make_unique<PinnedBlock>();
  block->address = static_cast<std::byte*>(address);
  block->bytes = bytes;
  stats.reserved += static_cast<int64_t>(bytes);
  return block;
}

void PinnedAllocator::State::release_kept(bool wait) {
  for (auto& [bytes, blocks] : kept) {
    std::erase_if(blocks, [&](const std::unique_ptr<PinnedBlock>& block) LS_REQUIRES(mutex) {
      // Poll: `synchronize` would consume a kernel's error that is meant for the caller of its
      // stream.
      while (wait && block->is_used()) std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (block->is_used()) return false;
      ++stats.system_calls;
      memory.release_pinned(block->address, block->bytes);
      stats.reserved -= static_cast<int64_t>(block->bytes);
      return true;
    });
  }
}

PinnedBlock* PinnedAllocator::State::find(const void* address) const {
  const auto* const place = static_cast<const std::byte*>(address);
  auto block = on_loan.upper_bound(place);
  if (block == on_loan.begin()) return nullptr;
  --block;
  return place < block->first + block->second->bytes ? block->second.get() : nullptr;
}

PinnedAllocator::PinnedAllocator(DeviceMemory& memory) : state_(std::make_unique<State>(memory)) {}

PinnedAllocator::~PinnedAllocator() { state_->release_kept(/*wait=*/true); }

Block PinnedAllocator::allocate(size_t bytes, const Stream&) {
  if (bytes == 0) return {nullptr, 0, nullptr, this};
  const MutexLock lock(state_->mutex);
  const size_t size = bytes <= kLargest ? rounded(bytes) : 0;
  std::unique_ptr<PinnedBlock> block;
  if (size != 0) {
    block = state_->take_kept(size);
    if (block == nullptr) block = state_->make(size);
    if (block == nullptr) {
      state_->release_kept(/*wait=*/true);
      block = state_->make(size);
    }
  }
  LS_CHECK(block != nullptr, OutOfMemoryError,
           "[pinned memory] {} bytes are refused: {} bytes are on loan, {} reserved. Use less "
           "pinned memory, or raise `ulimit -v`.",
           bytes, state_->stats.allocated, state_->stats.reserved);
  ++state_->stats.allocations;
  state_->stats.allocated += static_cast<int64_t>(size);
  state_->stats.peak_allocated = std::max(state_->stats.peak_allocated, state_->stats.allocated);
  const Block loan{block->address, size, nullptr, this};
  state_->on_loan[block->address] = std::move(block);
  return loan;
}

void PinnedAllocator::free(const Block& block) noexcept {
  const MutexLock lock(state_->mutex);
  const auto found = state_->on_loan.find(static_cast<const std::byte*>(block.data));
  if (found == state_->on_loan.end()) return;
  std::unique_ptr<PinnedBlock> freed = std::move(found->second);
  state_->on_loan.erase(found);
  for (const Stream& stream : std::exchange(freed->streams, {})) {
    try {
      add_use(*freed, stream);
    } catch (const DeviceError&) {
      // Destroying a stream waits for its work, so there is no use left to record.
    }
  }
  state_->stats.allocated -= static_cast<int64_t>(freed->bytes);
  state_->kept[freed->bytes].push_back(std::move(freed));
}

void PinnedAllocator::record_stream(const Block& block, const Stream& stream) {
  const MutexLock lock(state_->mutex);
  PinnedBlock* const found = state_->find(block.data);
  if (found == nullptr || std::ranges::find(found->streams, stream) != found->streams.end()) return;
  found->streams.push_back(stream);
}

void PinnedAllocator::record_use(const Block& block, const Stream& stream) {
  record_use(block.data, stream);
}

void PinnedAllocator::record_use(const void* address, const Stream& stream) {
  const MutexLock lock(state_->mutex);
  if (PinnedBlock* const found = state_->find(address)) add_use(*found, stream);
}

MemoryStats PinnedAllocator::stats() const {
  const MutexLock lock(state_->mutex);
  return state_->stats;
}

void PinnedAllocator::reset_peak() {
  const MutexLock lock(state_->mutex);
  state_->stats.peak_allocated = state_->stats.allocated;
}

bool PinnedAllocator::owns(const void* address) const {
  const MutexLock lock(state_->mutex);
  return state_->find(address) != nullptr;
}

void PinnedAllocator::empty_cache() {
  const MutexLock lock(state_->mutex);
  state_->release_kept(/*wait=*/false);
}

// Not analysed: these hold the lock across a fork.
void PinnedAllocator::lock() LS_NO_THREAD_SAFETY_ANALYSIS { state_->mutex.lock(); }
void PinnedAllocator::unlock() LS_NO_THREAD_SAFETY_ANALYSIS { state_->mutex.unlock(); }

namespace {

constinit std::atomic<PinnedAllocator*> g_pinned = nullptr;
constinit Mutex g_mutex;  ///< held while g_pinned is created

PinnedAllocator& make_pinned_allocator() {
  const MutexLock lock(g_mutex);
  if (PinnedAllocator* const made = g_pinned) return *made;
  DeviceMemory& memory = require_runtime(pinning_device()).memory(0);
  // Never destroyed: tensors with static storage duration are freed after any static destructor.
  g_pinned = new PinnedAllocator(memory);
  return *g_pinned;
}

void unlock_all() LS_RELEASE(g_mutex) {
  if (PinnedAllocator* const pinned = g_pinned) pinned->unlock();
  g_mutex.unlock();
}
[[maybe_unused]] const bool kPreparedForFork = pthread_atfork(
                                                   []() LS_ACQUIRE(g_mutex) {
                                                     g_mutex.lock();
                                                     if (PinnedAllocator* const pinned = g_pinned)
                                                       pinned->lock();
                                                   },
                                                   &unlock_all, &unlock_all) == 0;

}  // namespace

Device pinning_device() {
  std::optional<Device> any;
  for (int i = 0; i < kDeviceTypes; ++i) {
    const Device device{static_cast<DeviceType>(i), 0};
    DeviceRuntime* const runtime = device_runtime(device.type);
    if (runtime == nullptr || runtime->device_count() == 0) continue;
    if (runtime->needs_pinned_memory()) return device;
    if (!any) any = device;
  }
  LS_CHECK(any.has_value(), DeviceError,
           "[pinned memory] no device can pin memory: expected a device with streams, such as "
           "host:0.");
  return *any;
}

PinnedAllocator& pinned_allocator() {
  PinnedAllocator* const made = g_pinned.load(std::memory_order_acquire);
  return made != nullptr ? *made : make_pinned_allocator();
}

}  // namespace lockstep
