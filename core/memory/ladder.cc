// Fallbacks, in order, for a request that cached memory does not serve.

#include <algorithm>

#include "core/base/mutex.h"
#include "core/device/active_capture.h"
#include "core/memory/allocator_state.h"

namespace lockstep {

Chunk* CachingAllocator::State::find(const Request& request, HeapLock& lock) {
  // Marks that are captured stand for work that does not run: of it a poll learns nothing, and only
  // a wait is part of the graph.
  const bool polls =
      request.options.stream_reuse == StreamReuse::kPoll && active_capture() == nullptr;
  const auto search = [&]() LS_REQUIRES(request.heap.lock) {
    return request.heap.take(request.size, request.small, request.options);
  };
  if (polls) reuse_finished(request.heap);
  if (Chunk* const chunk = search()) return chunk;

  // Callbacks may free memory that the program can do without.
  if (call_free_memory_callbacks(lock)) {
    if (Chunk* const chunk = search()) return chunk;
  }

  // Take freed blocks that other streams still use: this stream waits for them on the device, the
  // cpu does not wait.
  while (!polls && !request.heap.pending.empty()) {
    reuse_oldest_pending(request.heap);
    if (Chunk* const chunk = search()) return chunk;
  }

  collect_garbage(request, lock);
  for (const Growth how : {Growth::kByRatio, Growth::kMoveFirst}) {
    if (Chunk* const chunk = grow(request, lock, how)) return chunk;
    if (Chunk* const chunk = search()) return chunk;  // grow() released the lock meanwhile
  }

  // Release memory that other streams cache and do not use.
  const auto retry = [&]() LS_REQUIRES(request.heap.lock) -> Chunk* {
    Chunk* chunk = search();
    if (chunk == nullptr) chunk = grow(request, lock, Growth::kMoveFirst);
    if (chunk != nullptr) ++rare.retries;
    return chunk;
  };
  if (request.size < request.options.max_split_size &&
      request.options.max_split_size != AllocatorOptions::kUnlimited) {
    // Release oversize blocks first: they are never split and so serve few requests.
    if (release_segments(
            request.heap, lock,
            request.heap.hold_free_segments(request.size, request.options.max_split_size))) {
      if (Chunk* const chunk = retry()) return chunk;
    }
  }
  if (release_elsewhere(request, lock, request.size) > 0) {
    if (Chunk* const chunk = retry()) return chunk;
  }

  while (!request.heap.pending.empty()) {
    reuse_oldest_pending(request.heap);
    if (Chunk* const chunk = retry()) return chunk;
  }

  synchronize_everything(lock);
  if (Chunk* const chunk = retry()) return chunk;
  release_elsewhere(request, lock, AllocatorOptions::kUnlimited);
  if (Chunk* const chunk = retry()) return chunk;
  throw_out_of_memory(request, lock);
}

// Not analysed: `lock` is the lock of the heap, which the analysis does not know.
bool CachingAllocator::State::call_free_memory_callbacks(HeapLock& lock)
    LS_NO_THREAD_SAFETY_ANALYSIS {
  const std::vector<ShortageCallbacks::FreeMemory> called = callbacks.free_memory();
  if (called.empty()) return false;
  lock.unlock();
  bool freed = false;
  for (const auto& callback : called) freed |= callback();
  lock.lock();
  return freed;
}

void CachingAllocator::State::collect_garbage(const Request& request, HeapLock& lock) {
  const double threshold = request.options.garbage_collection_threshold;
  if (threshold <= 0) return;
  const auto limit = static_cast<int64_t>(threshold * static_cast<double>(budget()));
  int64_t above = counts.reserved() - limit;
  // Release segments that have been free for longer than the average; repeat while any are left.
  while (above > 0) {
    const std::vector<Chunk*> free = request.heap.hold_free_segments(AllocatorOptions::kUnlimited);
    uint64_t ages = 0;
    size_t large = 0;
    for (const Chunk* chunk : free) {
      if (chunk->segment->small) continue;
      ages += request.heap.searches - chunk->freed_at;
      ++large;
    }
    std::vector<Chunk*> old;
    for (Chunk* chunk : free) {
      const uint64_t age = request.heap.searches - chunk->freed_at;
      if (above > 0 && !chunk->segment->small && age * large >= ages) {
        above -= static_cast<int64_t>(chunk->size);
        old.push_back(chunk);
      } else {
        const uint64_t freed_at = chunk->freed_at;
        request.heap.join(chunk);
        chunk->freed_at = freed_at;
      }
    }
    if (release_segments(request.heap, lock, old) == 0) return;
  }
}

// Not analysed: `lock` is the lock of the heap, which the analysis does not know.
size_t CachingAllocator::State::release_elsewhere(const Request& request, HeapLock& lock,
                                                  size_t bytes) LS_NO_THREAD_SAFETY_ANALYSIS {
  lock.unlock();
  reap_pools(/*may_wait=*/true);
  // The requesting heap comes last, because its free granules can be moved to serve the request.
  std::vector<Heap*> all = directory.all();
  std::erase(all, &request.heap);
  all.push_back(&request.heap);
  size_t released = 0;
  for (Heap* heap : all) {
    if (released >= bytes) break;
    HeapLock heap_lock(heap->lock);
    if (heap->keeps_layout) continue;
    if (heap != &request.heap) {
      while (!heap->pending.empty()) reuse_oldest_pending(*heap);
    }
    released += release_cached(*heap, heap_lock, bytes - released);
  }
  lock.lock();
  return released;
}

// Not analysed: `lock` is the lock of the heap, which the analysis does not know.
void CachingAllocator::State::synchronize_everything(HeapLock& lock) LS_NO_THREAD_SAFETY_ANALYSIS {
  lock.unlock();
  for (Heap* heap : directory.all()) {
    Stream stream;
    {
      const MutexLock guard(heap->lock);
      while (!heap->pending.empty()) reuse_oldest_pending(*heap);
      stream = heap->stream;
    }
    wait_for(stream, "memory is short");
  }
  lock.lock();
}

}  // namespace lockstep
