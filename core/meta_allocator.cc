#include "core/meta_allocator.h"

namespace lockstep {

Block MetaAllocator::allocate(size_t bytes, const Stream&) {
  if (bytes == 0) return {nullptr, 0, nullptr, this};
  const std::lock_guard lock(mutex_);
  FreeList::Chunk* chunk = list_.take(bytes);
  return {nullptr, chunk->bytes, chunk, this};
}

void MetaAllocator::free(const Block& block) noexcept {
  if (block.cookie == nullptr) return;
  const std::lock_guard lock(mutex_);
  list_.give_back(static_cast<FreeList::Chunk*>(block.cookie));
}

void MetaAllocator::record_stream(const Block&, const Stream&) {}  // nothing runs on these blocks

MemoryStats MetaAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  return list_.stats();
}

void MetaAllocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  list_.reset_peak();
}

}  // namespace lockstep
