#include "core/memory/chunk.h"

#include "core/base/mutex.h"

namespace lockstep {

ChunkTable::~ChunkTable() {
  for (const std::atomic<Chunk*>& page : pages_) delete[] page.load();
}

Chunk* ChunkTable::make(Heap* heap) {
  const MutexLock guard(lock_);
  const uint32_t begin = made_.load(std::memory_order_relaxed);
  const int page = std::bit_width((begin >> kFirstPage) + 1) - 1;
  if (pages_[static_cast<size_t>(page)].load(std::memory_order_relaxed) == nullptr) {
    pages_[static_cast<size_t>(page)].store(new Chunk[size_t{1} << (page + kFirstPage)],
                                            std::memory_order_release);
  }
  Chunk* first = nullptr;
  for (uint32_t index = begin + kBatch; index-- > begin;) {
    if (index == 0) continue;  // handle 0 is reserved
    Chunk* const chunk = at(index);
    chunk->heap = heap;
    chunk->handle = index;
    chunk->bin_next = first;
    first = chunk;
  }
  made_.store(begin + kBatch, std::memory_order_release);
  return first;
}

}  // namespace lockstep
