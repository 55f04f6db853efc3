#include "core/free_list_allocator.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "core/check.h"

namespace lockstep {

namespace {

constexpr size_t kHugePage = 2u << 20;

size_t whole_pages(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

}  // namespace

FreeListAllocator::FreeListAllocator(size_t capacity)
    : capacity_(whole_pages(capacity)), list_(capacity_) {
  range_ = mmap(nullptr, capacity_ + kHugePage, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LS_CHECK(range_ != MAP_FAILED, OutOfMemoryError,
           "[allocator] cannot reserve {} bytes of address space: {}. Raise `ulimit -v`.",
           capacity_, std::strerror(errno));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(range_);
  base_ = reinterpret_cast<std::byte*>(whole_pages(begin));
  // Huge pages make the first touch some ten times cheaper; a refusal costs only that.
  (void)madvise(base_, capacity_, MADV_HUGEPAGE);
}

FreeListAllocator::~FreeListAllocator() { munmap(range_, capacity_ + kHugePage); }

Block FreeListAllocator::allocate(size_t bytes, const Stream&) {
  if (bytes == 0) return {nullptr, 0, nullptr, this};
  const std::lock_guard guard(lock_);
  FreeList::Chunk* chunk = list_.take(bytes);
  return {base_ + chunk->begin, chunk->bytes, chunk, this};
}

void FreeListAllocator::free(const Block& block) noexcept {
  if (block.data == nullptr) return;
  const std::lock_guard guard(lock_);
  list_.give_back(static_cast<FreeList::Chunk*>(block.cookie));
}

void FreeListAllocator::record_stream(const Block&, const Stream&) {
  // One synchronous stream: nothing can still be using a freed block.
}

MemoryStats FreeListAllocator::stats() const {
  const std::lock_guard guard(lock_);
  MemoryStats stats = list_.stats();
  stats.system_calls = 2;  // the constructor's
  return stats;
}

void FreeListAllocator::reset_peak() {
  const std::lock_guard guard(lock_);
  list_.reset_peak();
}

}  // namespace lockstep
