// Addresses of granules that were moved while work still used them.
//
// The stream's later work uses a moved granule at its new address, its earlier work at the old one,
// where it stays mapped until that work is done. So moving memory out of holes makes nobody wait.

#include "core/memory/allocator_state.h"

namespace lockstep {

void CachingAllocator::State::unmap_emptied(const std::vector<Chunk*>& chunks,
                                            const Stream& stream) noexcept {
  for (const Chunk* chunk : chunks) {
    ++rare.driver_frees;
    open(chunk->address, chunk->size);
    memory.unmap(reinterpret_cast<void*>(chunk->address), chunk->size);
    note_segment(TraceEntry::Action::kSegmentUnmap, chunk->address, chunk->size, stream);
  }
}

std::optional<Event> CachingAllocator::State::leave_mapped(const std::vector<Chunk*>& chunks,
                                                           const Stream& stream) {
  try {
    Event event = events.take();
    event.record(stream);
    return event;
  } catch (const std::exception&) {
    // The stream was destroyed, and its work is done; or its device has failed.
    wait_for(stream, "memory that it used is moved");
    unmap_emptied(chunks, stream);
    return std::nullopt;
  }
}

// Not analysed: `lock` is the lock of the heap, which the analysis does not know.
void CachingAllocator::State::unmap_leaving(Heap& heap, HeapLock& lock,
                                            int64_t most) LS_NO_THREAD_SAFETY_ANALYSIS {
  while (!heap.leaving.empty() && heap.leaving_bytes > most) {
    Heap::Leaving oldest = std::move(heap.leaving.front());
    heap.leaving.pop_front();
    for (Chunk* chunk : oldest.chunks) {
      chunk->state = ChunkState::kHeld;
      heap.leaving_bytes -= static_cast<int64_t>(chunk->size);
    }
    const Stream stream = heap.stream;  // the heap's stream may be destroyed meanwhile
    lock.unlock();
    try {
      wait_for(std::move(oldest.after), stream, "addresses of memory that it used are needed");
    } catch (const std::exception&) {
      wait_for(stream, "addresses of memory that it used are needed");
    }
    unmap_emptied(oldest.chunks, stream);
    lock.lock();
    for (Chunk* chunk : oldest.chunks) heap.settle(chunk);
  }
}

}  // namespace lockstep
