// Private pools: sets of heaps separate from all others.

#include <algorithm>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/memory/allocator_state.h"

namespace lockstep {

/// Saved positions of a pool's blocks.
struct PoolState {
  struct SavedBlock {
    uintptr_t address = 0;
    size_t size = 0;
    size_t requested = 0;
    uint64_t handle = 0;  ///< tells whether it is still the same allocation
    bool small = false;
    const OperatorName* op = nullptr;
    const std::string* module = nullptr;
  };
  struct SavedSegment {
    Heap* heap = nullptr;
    uintptr_t address = 0;
    std::vector<SavedBlock> live;
  };
  std::vector<SavedSegment> segments;
};

PoolId CachingAllocator::create_pool() {
  const MutexLock guard(state_->directory.lock);
  const PoolId pool = ++state_->directory.last_pool;
  state_->directory.pools[pool];
  return pool;
}

namespace {

template <class Pools>
auto& find_pool(Pools& pools, PoolId pool) {
  const auto found = pools.find(pool);
  LS_CHECK(found != pools.end() && !found->second.released, DeviceError,
           "[allocator] there is no pool {}: expected one that create_pool "
           "returned and that was "
           "not released.",
           pool);
  return found->second;
}

}  // namespace

void CachingAllocator::release_pool(PoolId pool) {
  {
    const MutexLock guard(state_->directory.lock);
    find_pool(state_->directory.pools, pool).released = true;
    state_->watch(State::kWatchPools, true);
  }
  state_->reap_pools(/*may_wait=*/true);
}

int64_t CachingAllocator::live_blocks(PoolId pool) const {
  const MutexLock guard(state_->directory.lock);
  int64_t blocks = 0;
  for (const Heap* heap : find_pool(state_->directory.pools, pool).heaps) {
    const MutexLock heap_guard(heap->lock);
    blocks += heap->counts.blocks();
  }
  return blocks;
}

void CachingAllocator::State::reap_pools(bool may_wait) noexcept {
  std::vector<Heap*> empty;
  {
    const MutexLock guard(directory.lock);
    bool some_left = false;
    for (auto at = directory.pools.begin(); at != directory.pools.end();) {
      HeapDirectory::Pool& pool = at->second;
      const bool done = pool.released && std::ranges::all_of(pool.heaps, [&](Heap* heap) {
                          const MutexLock heap_guard(heap->lock);
                          if (may_wait || synchronous) {
                            while (!heap->pending.empty()) reuse_oldest_pending(*heap);
                          }
                          return heap->is_empty() && (may_wait || is_idle(heap->stream));
                        });
      if (!done) {
        some_left |= pool.released;
        ++at;
        continue;
      }
      empty.insert(empty.end(), pool.heaps.begin(), pool.heaps.end());
      std::erase_if(directory.by_stream,
                    [&](const auto& each) { return each.first.first == at->first; });
      at = directory.pools.erase(at);
    }
    watch(kWatchPools, some_left);
  }
  for (Heap* heap : empty) {
    {
      HeapLock lock(heap->lock);
      heap->keeps_layout = false;
      release_cached(*heap, lock, AllocatorOptions::kUnlimited);
      Segment* const range = heap->range();
      if (range != nullptr) {
        ++rare.other_driver_calls;
        memory.unreserve(reinterpret_cast<void*>(range->address), range->size);
        heap->remove_segment(range);
      }
    }
    const MutexLock guard(directory.lock);
    directory.unused.push_back(heap);
  }
}

std::shared_ptr<const PoolState> CachingAllocator::checkpoint(PoolId pool) const {
  auto state = std::make_shared<PoolState>();
  const MutexLock guard(state_->directory.lock);
  for (Heap* heap : find_pool(state_->directory.pools, pool).heaps) {
    const MutexLock heap_guard(heap->lock);
    for (const auto& segment : heap->segments()) {
      PoolState::SavedSegment& saved = state->segments.emplace_back();
      saved.heap = heap;
      saved.address = segment->address;
      for (const Chunk* chunk = segment->first; chunk != nullptr; chunk = chunk->next) {
        if (chunk->state != ChunkState::kLive) continue;
        saved.live.push_back({chunk->address, chunk->size, chunk->requested, chunk->handle,
                              chunk->small, chunk->op, chunk->module});
      }
    }
  }
  return state;
}

std::vector<Block> CachingAllocator::restore(PoolId pool, const PoolState& state) {
  const MutexLock guard(state_->directory.lock);
  const std::vector<Heap*>& heaps = find_pool(state_->directory.pools, pool).heaps;
  const auto segment_of = [&](const PoolState::SavedSegment& saved) -> Segment* {
    saved.heap->lock.assert_held();
    if (std::ranges::find(heaps, saved.heap) == heaps.end()) return nullptr;
    for (const auto& segment : saved.heap->segments()) {
      if (segment->address == saved.address) return segment.get();
    }
    return nullptr;
  };
  for (const PoolState::SavedSegment& saved : state.segments) {
    const MutexLock heap_guard(saved.heap->lock);
    LS_CHECK(segment_of(saved) != nullptr, DeviceError,
             "[allocator] pool {} cannot be restored: it has lost the segment "
             "at {:#x} since the "
             "checkpoint.",
             pool, saved.address);
  }

  const auto is_same_loan = [&](const PoolState::SavedBlock& saved) {
    const Chunk* const chunk = state_->table.find(static_cast<uint32_t>(saved.handle));
    return chunk->state == ChunkState::kLive && chunk->handle == saved.handle;
  };
  std::vector<uint64_t> kept;
  for (const PoolState::SavedSegment& saved : state.segments) {
    const MutexLock heap_guard(saved.heap->lock);
    for (const PoolState::SavedBlock& block : saved.live) {
      if (is_same_loan(block)) kept.push_back(block.handle);
    }
  }
  for (Heap* heap : heaps) {
    const MutexLock heap_guard(heap->lock);
    while (!heap->pending.empty()) state_->reuse_oldest_pending(*heap);
    std::vector<Chunk*> gone;
    for (const auto& segment : heap->segments()) {
      for (Chunk* chunk = segment->first; chunk != nullptr; chunk = chunk->next) {
        const bool stays = std::ranges::find(kept, chunk->handle) != kept.end();
        if (chunk->state == ChunkState::kLive && !stays) gone.push_back(chunk);
      }
    }
    for (Chunk* chunk : gone) {
      heap->counts.remove(chunk->size, chunk->requested, chunk->small);
      state_->complete(*heap, chunk);
    }
    heap->join_waiting();
  }

  std::vector<Block> blocks;
  for (const PoolState::SavedSegment& saved : state.segments) {
    const MutexLock heap_guard(saved.heap->lock);
    for (const PoolState::SavedBlock& block : saved.live) {
      if (is_same_loan(block)) {
        blocks.push_back(state_->block_of(state_->table.find(static_cast<uint32_t>(block.handle))));
        continue;
      }
      Chunk* const chunk = saved.heap->take_at(*segment_of(saved), block.address, block.size);
      LS_CHECK(chunk != nullptr, DeviceError,
               "[allocator] pool {} cannot be restored: the memory at {:#x} is "
               "gone.",
               pool, block.address);
      blocks.push_back(state_->lend(*saved.heap, chunk, block.requested, block.small));
      chunk->op = block.op;
      chunk->module = block.module;
    }
  }
  return blocks;
}

PoolGuard::PoolGuard(CachingAllocator& allocator, PoolId pool)
    : pool_(CachingAllocator::State::thread_pool, {&allocator, pool}) {
  allocator.live_blocks(pool);  // throws if there is no such pool
}

}  // namespace lockstep
