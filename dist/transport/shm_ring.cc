#include "dist/transport/shm_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/check.h"

namespace lockstep::dist {

// Writer and reader may be in different processes: a non-lock-free atomic would use a lock that
// protects only within one process.
static_assert(std::atomic<uint64_t>::is_always_lock_free);

RingWriter::RingWriter(RingPositions& positions, std::byte* data, size_t capacity)
    : positions_(positions), data_(data), capacity_(capacity) {
  LS_ASSERT(std::has_single_bit(capacity));
}

size_t RingWriter::room(size_t enough) noexcept {
  size_t room = capacity_ - (at_ - known_read_);
  if (room < enough) {
    known_read_ = positions_.read.load(std::memory_order_seq_cst);
    room = capacity_ - (at_ - known_read_);
  }
  return room;
}

void RingWriter::write(const void* data, size_t bytes) noexcept {
  const auto* const from = static_cast<const std::byte*>(data);
  const size_t place = at_ & (capacity_ - 1);
  const size_t first = std::min(bytes, capacity_ - place);
  if (first > 0) std::memcpy(data_ + place, from, first);
  if (bytes > first) std::memcpy(data_, from + first, bytes - first);
  at_ += bytes;
}

bool RingWriter::publish() noexcept {
  if (at_ == published_) return false;
  published_ = at_;
  // Sequentially consistent, not just release: the writer checks next whether the reader sleeps.
  positions_.written.store(at_, std::memory_order_seq_cst);
  return true;
}

void RingWriter::want(size_t bytes) noexcept {
  // at_ + bytes - capacity is at most at_, so the reader will reach it; clamp it to the start.
  const uint64_t filled = capacity_ - bytes;
  positions_.wanted.store(at_ > filled ? at_ - filled : 0, std::memory_order_seq_cst);
}

void RingWriter::stop_wanting() noexcept {
  positions_.wanted.store(RingPositions::kNowhere, std::memory_order_relaxed);
}

RingReader::RingReader(RingPositions& positions, const std::byte* data, size_t capacity)
    : positions_(positions), data_(data), capacity_(capacity) {
  LS_ASSERT(std::has_single_bit(capacity));
}

size_t RingReader::available(size_t enough) noexcept {
  size_t available = known_written_ - at_;
  if (available < enough) {
    known_written_ = positions_.written.load(std::memory_order_seq_cst);
    available = known_written_ - at_;
  }
  return available;
}

void RingReader::read(void* to, size_t bytes) noexcept {
  auto* const target = static_cast<std::byte*>(to);
  const size_t place = at_ & (capacity_ - 1);
  const size_t first = std::min(bytes, capacity_ - place);
  if (first > 0) std::memcpy(target, data_ + place, first);
  if (bytes > first) std::memcpy(target + first, data_, bytes - first);
  at_ += bytes;
}

bool RingReader::release() noexcept {
  positions_.read.store(at_, std::memory_order_seq_cst);
  return at_ >= positions_.wanted.load(std::memory_order_seq_cst);
}

}  // namespace lockstep::dist
