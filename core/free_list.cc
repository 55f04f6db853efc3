#include "core/free_list.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace lockstep {

namespace {

// A remainder below this stays with the block: splitting it off would only make crumbs.
size_t smallest_remainder(size_t bytes, size_t granule) {
  return bytes < (1u << 20) ? granule : bytes / 16;
}

}  // namespace

FreeList::~FreeList() {
  while (last_ != nullptr) delete std::exchange(last_, last_->previous);
  while (spare_ != nullptr) delete std::exchange(spare_, spare_->next);
}

FreeList::Chunk* FreeList::new_chunk() {
  if (spare_ == nullptr) return new Chunk{};
  return std::exchange(spare_, spare_->next);
}

void FreeList::insert_free(Chunk* chunk) {
  chunk->free = true;
  chunk->place = free_.emplace(chunk->bytes, chunk);
}

FreeList::Chunk* FreeList::extend(size_t bytes) {
  // A free chunk at the mark is stretched, so that a growing working set leaves no hole behind.
  if (last_ != nullptr && last_->free) {
    LS_CHECK(bytes - last_->bytes <= capacity_ - used_, OutOfMemoryError,
             "[allocator] out of memory: expected {} more bytes, but {} of {} are in use. Lower "
             "the batch size.",
             bytes, used_, capacity_);
    free_.erase(last_->place);
    used_ += bytes - last_->bytes;
    last_->bytes = bytes;
    return last_;
  }
  LS_CHECK(bytes <= capacity_ - used_, OutOfMemoryError,
           "[allocator] out of memory: expected {} more bytes, but {} of {} are in use. Lower the "
           "batch size.",
           bytes, used_, capacity_);
  Chunk* chunk = new_chunk();
  *chunk = {used_, bytes, last_, nullptr, false, {}, nullptr};
  if (last_ != nullptr) last_->next = chunk;
  last_ = chunk;
  used_ += bytes;
  return chunk;
}

FreeList::Chunk* FreeList::take(size_t bytes) {
  LS_CHECK(bytes <= capacity_, OutOfMemoryError,
           "[allocator] {} bytes are more than this process may ever hold ({}).", bytes, capacity_);
  const size_t wanted = (bytes + kGranule - 1) / kGranule * kGranule;
  Chunk* chunk;
  if (wanted <= kLargestWaiting && waiting(wanted) != nullptr) {
    chunk = std::exchange(waiting(wanted), waiting(wanted)->next_waiting);
  } else {
    chunk = find(wanted);
  }
  stats_.allocated += static_cast<int64_t>(chunk->bytes);
  stats_.peak_allocated = std::max(stats_.peak_allocated, stats_.allocated);
  ++stats_.allocations;
  return chunk;
}

FreeList::Chunk* FreeList::find(size_t wanted) {
  auto fit = free_.lower_bound(wanted);
  if (fit == free_.end() && join_waiting()) fit = free_.lower_bound(wanted);
  Chunk* chunk;
  if (fit != free_.end()) {
    chunk = fit->second;
    free_.erase(fit);
  } else {
    chunk = extend(wanted);
  }
  chunk->free = false;
  if (chunk->bytes - wanted >= smallest_remainder(wanted, kGranule)) {
    Chunk* rest = new_chunk();
    *rest = {chunk->begin + wanted, chunk->bytes - wanted, chunk, chunk->next, true, {}, nullptr};
    if (rest->next != nullptr) rest->next->previous = rest;
    if (last_ == chunk) last_ = rest;
    chunk->next = rest;
    chunk->bytes = wanted;
    insert_free(rest);
  }
  return chunk;
}

FreeList::Chunk* FreeList::join(Chunk* left, Chunk* right) noexcept {
  left->bytes += right->bytes;
  left->next = right->next;
  if (left->next != nullptr) left->next->previous = left;
  if (last_ == right) last_ = left;
  right->next = spare_;
  spare_ = right;
  return left;
}

void FreeList::give_back(Chunk* chunk) noexcept {
  stats_.allocated -= static_cast<int64_t>(chunk->bytes);
  if (chunk->bytes <= kLargestWaiting) {
    chunk->next_waiting = std::exchange(waiting(chunk->bytes), chunk);
  } else {
    set_free(chunk);
  }
}

bool FreeList::join_waiting() noexcept {
  bool any = false;
  for (Chunk*& first : waiting_) {
    while (first != nullptr) {
      set_free(std::exchange(first, first->next_waiting));
      any = true;
    }
  }
  return any;
}

void FreeList::set_free(Chunk* chunk) noexcept {
  if (Chunk* left = chunk->previous; left != nullptr && left->free) {
    free_.erase(left->place);
    chunk = join(left, chunk);
  }
  if (Chunk* right = chunk->next; right != nullptr && right->free) {
    free_.erase(right->place);
    chunk = join(chunk, right);
  }
  insert_free(chunk);
}

MemoryStats FreeList::stats() const {
  MemoryStats stats = stats_;
  stats.reserved = static_cast<int64_t>(used_);
  return stats;
}

}  // namespace lockstep
