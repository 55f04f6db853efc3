#include "core/memory/counts.h"

#include "core/base/mutex.h"

namespace lockstep {

namespace {

QuantityTable& raise(QuantityTable& peak, const QuantityTable& current) {
  for (size_t pool = 0; pool < kPoolKinds; ++pool) {
    for (size_t q = 0; q < kQuantities; ++q) {
      peak[pool][q] = std::max(peak[pool][q], current[pool][q]);
    }
  }
  return peak;
}

void add_to(Stat& stat, int64_t change) {
  stat.current += change;
  stat.peak = std::max(stat.peak, stat.current);
  (change > 0 ? stat.allocated : stat.freed) += change > 0 ? change : -change;
}

}  // namespace

QuantityTable HeapCounts::current() const noexcept {
  QuantityTable table;
  for (size_t pool = 0; pool < 2; ++pool) {
    const int64_t blocks = blocks_.pools[pool].now;
    const int64_t bytes = bytes_.pools[pool].now;
    table[pool] = {blocks, bytes, requested_.pools[pool].now, blocks + pending_blocks_[pool],
                   bytes + pending_bytes_[pool]};
  }
  for (size_t q = 0; q < kQuantities; ++q) table[2][q] = table[0][q] + table[1][q];
  return table;
}

QuantityTable HeapCounts::freed() const noexcept {
  QuantityTable table;
  for (size_t pool = 0; pool < 2; ++pool) {
    const int64_t blocks = blocks_.pools[pool].freed;
    const int64_t bytes = bytes_.pools[pool].freed;
    table[pool] = {blocks, bytes, requested_.pools[pool].freed, blocks - pending_blocks_[pool],
                   bytes - pending_bytes_[pool]};
  }
  for (size_t q = 0; q < kQuantities; ++q) table[2][q] = table[0][q] + table[1][q];
  return table;
}

void HeapCounts::raise_peaks() noexcept {
  start_peaks(raise(peak_, current()));
  most_requested_ever_ = std::max(most_requested_ever_, requested());
}

void HeapCounts::start_peaks(const QuantityTable& peak) noexcept {
  peak_ = peak;
  const std::array<Count*, 3> counts = {&blocks_, &bytes_, &requested_};
  for (size_t q = 0; q < counts.size(); ++q) {
    counts[q]->pools[0].most = peak[0][q];
    counts[q]->pools[1].most = peak[1][q];
    counts[q]->most = peak[2][q];
  }
}

void HeapCounts::change_pending(int64_t sign, size_t bytes, bool small) noexcept {
  const size_t pool = small ? 0 : 1;
  pending_ += sign;
  pending_blocks_[pool] += sign;
  pending_bytes_[pool] += sign * static_cast<int64_t>(bytes);
}

void DeviceCounts::publish(HeapCounts& heap) {
  const QuantityTable current = heap.current();
  const QuantityTable freed = heap.freed();
  const MutexLock guard(lock_);
  for (size_t pool = 0; pool < kPoolKinds; ++pool) {
    for (size_t q = 0; q < kQuantities; ++q) {
      const int64_t others = current_[pool][q] - heap.published_[pool][q];
      peak_[pool][q] = std::max(peak_[pool][q], others + heap.peak_[pool][q]);
      current_[pool][q] = others + current[pool][q];
      freed_[pool][q] += freed[pool][q] - heap.published_freed_[pool][q];
    }
  }
  heap.published_ = current;
  heap.start_peaks(current);
  heap.published_freed_ = freed;
  heap.published_bytes_ = heap.bytes();
}

void DeviceCounts::Tally::add(int64_t change, bool small) {
  add_to(all, change);
  add_to(small ? small_pool : large_pool, change);
}

void DeviceCounts::add_reserved(int64_t bytes, bool small) {
  const MutexLock guard(lock_);
  reserved_.add(bytes, small);
}

void DeviceCounts::add_segments(int64_t count, bool small) {
  const MutexLock guard(lock_);
  segments_.add(count, small);
}

void DeviceCounts::fill(DeviceMemoryStats& stats) const {
  const MutexLock guard(lock_);
  const std::array<PoolStat*, kQuantities> blocks = {&stats.allocation, &stats.allocated_bytes,
                                                     &stats.requested_bytes, &stats.active,
                                                     &stats.active_bytes};
  for (size_t q = 0; q < kQuantities; ++q) {
    const std::array<Stat*, kPoolKinds> pools = {&blocks[q]->small_pool, &blocks[q]->large_pool,
                                                 &blocks[q]->all};
    for (size_t pool = 0; pool < kPoolKinds; ++pool) {
      *pools[pool] = {current_[pool][q], peak_[pool][q], current_[pool][q] + freed_[pool][q],
                      freed_[pool][q]};
    }
  }
  stats.reserved_bytes = {reserved_.all, reserved_.small_pool, reserved_.large_pool};
  stats.segment = {segments_.all, segments_.small_pool, segments_.large_pool};
}

int64_t DeviceCounts::reserved() const {
  const MutexLock guard(lock_);
  return reserved_.all.current;
}

void DeviceCounts::reset_peaks() {
  const MutexLock guard(lock_);
  peak_ = current_;
  for (Tally* tally : {&reserved_, &segments_}) {
    for (Stat* stat : {&tally->all, &tally->small_pool, &tally->large_pool}) {
      stat->peak = stat->current;
    }
  }
}

}  // namespace lockstep
