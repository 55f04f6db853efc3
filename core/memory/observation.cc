// Statistics, snapshots and history of an allocator.

#include <algorithm>

#include "core/base/mutex.h"
#include "core/memory/allocator_state.h"

namespace lockstep {

MemoryStats CachingAllocator::stats() const {
  const DeviceMemoryStats all = state_->collect_counts();
  MemoryStats stats;
  stats.allocated = all.allocated_bytes.all.current;
  stats.peak_allocated = all.allocated_bytes.all.peak;
  stats.reserved = all.reserved_bytes.all.current;
  stats.allocations = all.allocation.all.allocated;
  stats.system_calls =
      state_->rare.driver_allocations + state_->rare.driver_frees + state_->rare.other_driver_calls;
  return stats;
}

DeviceMemoryStats CachingAllocator::State::collect_counts() const {
  for (Heap* heap : directory.all()) {
    const MutexLock guard(heap->lock);
    counts.publish(heap->counts);
  }
  DeviceMemoryStats stats;
  counts.fill(stats);
  stats.num_alloc_retries = rare.retries;
  stats.num_ooms = rare.ooms;
  stats.num_sync_all_streams = rare.synchronizations;
  stats.num_device_alloc = rare.driver_allocations;
  stats.num_device_free = rare.driver_frees;
  stats.num_stitched = rare.stitched;
  stats.num_stream_waits = rare.stream_waits;
  return stats;
}

namespace {

void subtract(Stat& stat, const Stat& before) {
  stat.allocated -= before.allocated;
  stat.freed -= before.freed;
}

void subtract(PoolStat& stat, const PoolStat& before) {
  subtract(stat.all, before.all);
  subtract(stat.small_pool, before.small_pool);
  subtract(stat.large_pool, before.large_pool);
}

void set_now(Stat& stat, int64_t now) { stat.current = stat.peak = stat.allocated = now; }

}  // namespace

DeviceMemoryStats CachingAllocator::memory_stats() const {
  DeviceMemoryStats stats = state_->collect_counts();
  Heap::Splits all;
  for (Heap* heap : state_->directory.all()) {
    const MutexLock guard(heap->lock);
    const Heap::Splits splits = heap->count_splits();
    all.blocks += splits.blocks;
    all.bytes += splits.bytes;
    if (heap->planner != nullptr && heap->planner->plan() != nullptr) {
      const MemoryPlan& plan = *heap->planner->plan();
      stats.planned_peak_bytes += static_cast<int64_t>(plan.planned_peak());
      stats.planned_lower_bound += static_cast<int64_t>(plan.lower_bound());
    }
  }
  set_now(stats.inactive_split.all, all.blocks);
  set_now(stats.inactive_split_bytes.all, all.bytes);
  const size_t max_split = state_->options.current().max_split_size;
  stats.max_split_size =
      max_split == AllocatorOptions::kUnlimited ? -1 : static_cast<int64_t>(max_split);

  const DeviceMemoryStats before = state_->baseline.get();
  subtract(stats.allocation, before.allocation);
  subtract(stats.segment, before.segment);
  subtract(stats.active, before.active);
  subtract(stats.allocated_bytes, before.allocated_bytes);
  subtract(stats.reserved_bytes, before.reserved_bytes);
  subtract(stats.active_bytes, before.active_bytes);
  subtract(stats.requested_bytes, before.requested_bytes);
  stats.num_alloc_retries -= before.num_alloc_retries;
  stats.num_ooms -= before.num_ooms;
  stats.num_sync_all_streams -= before.num_sync_all_streams;
  stats.num_device_alloc -= before.num_device_alloc;
  stats.num_device_free -= before.num_device_free;
  stats.num_stitched -= before.num_stitched;
  stats.num_stream_waits -= before.num_stream_waits;
  return stats;
}

void CachingAllocator::reset_peak_memory_stats() {
  state_->collect_counts();
  state_->counts.reset_peaks();
  state_->history.reset_peak();
}

void CachingAllocator::reset_peak() { reset_peak_memory_stats(); }

void CachingAllocator::reset_accumulated_memory_stats() {
  state_->baseline.set(state_->collect_counts());
}

void CachingAllocator::empty_cache() {
  State& state = *state_;
  state.reap_pools(/*may_wait=*/true);
  for (Heap* heap : state.directory.all()) {
    State::HeapLock lock(heap->lock);
    if (heap->keeps_layout) continue;
    while (!heap->pending.empty()) state.reuse_oldest_pending(*heap);
    state.release_cached(*heap, lock, AllocatorOptions::kUnlimited);
  }
}

namespace {

BlockInfo::State state_of(const Chunk& chunk) {
  switch (chunk.state) {
    case ChunkState::kLive:
      return BlockInfo::State::kActiveAllocated;
    case ChunkState::kPending:
      return BlockInfo::State::kActivePendingFree;
    default:
      return BlockInfo::State::kInactive;
  }
}

void add_block(SegmentInfo& info, BlockInfo block) {
  info.total_size += block.size;
  if (block.state == BlockInfo::State::kActiveAllocated) info.allocated_size += block.size;
  if (block.state != BlockInfo::State::kInactive) info.active_size += block.size;
  info.requested_size += block.requested_size;
  info.blocks.push_back(std::move(block));
}

/// Adds the blocks in the arena, and the gaps between them.
void add_arena(SegmentInfo& info, const Heap& heap) LS_REQUIRES(heap.lock) {
  std::vector<const Chunk*> planned(heap.planned.begin(), heap.planned.end());
  std::ranges::sort(planned, {}, &Chunk::address);
  uintptr_t at = heap.arena->address;
  const auto add_gap = [&](uintptr_t end) {
    if (end > at) add_block(info, {at, end - at, 0, BlockInfo::State::kInactive, {}});
  };
  for (const Chunk* chunk : planned) {
    add_gap(chunk->address);
    add_block(info, info_of(*chunk, state_of(*chunk)));
    at = chunk->end();
  }
  add_gap(heap.arena->end());
}

void add_segment(std::vector<SegmentInfo>& segments, const Heap& heap, const Segment& segment,
                 Device device) LS_REQUIRES(heap.lock) {
  bool in_run = false;
  for (const Chunk* chunk = segment.first; chunk != nullptr; chunk = chunk->next) {
    if (!chunk->has_memory()) {
      in_run = false;
      continue;
    }
    if (!in_run) {
      SegmentInfo& info = segments.emplace_back();
      info.device = device;
      info.address = chunk->address;
      info.stream = heap.stream.id;
      info.is_large = !segment.small;
      info.is_expandable = segment.is_range();
      info.pool = heap.pool;
      in_run = true;
    }
    if (chunk == heap.arena) {
      add_arena(segments.back(), heap);
    } else {
      add_block(segments.back(), info_of(*chunk, state_of(*chunk)));
    }
  }
}

}  // namespace

MemorySnapshot CachingAllocator::snapshot() const {
  MemorySnapshot snapshot;
  snapshot.device = device_;
  snapshot.options = options();
  for (Heap* heap : state_->directory.all()) {
    const MutexLock guard(heap->lock);
    for (const auto& segment : heap->segments()) {
      add_segment(snapshot.segments, *heap, *segment, device_);
    }
  }
  std::ranges::sort(snapshot.segments, {}, &SegmentInfo::address);
  if ((state_->watches.load() & State::kWatchHistory) != 0) {
    state_->history.add(TraceEntry::Action::kSnapshot, 0, 0, {device_, 0});
  }
  snapshot.trace = state_->history.entries();
  return snapshot;
}

void CachingAllocator::record_memory_history(size_t entries, bool stacks) {
  state_->history.start(entries, stacks);
  state_->watch(State::kWatchHistory, entries != 0);
}

void CachingAllocator::record_spans(bool on) { state_->watch(State::kWatchSpans, on); }

void CachingAllocator::note(const std::string& label) {
  TraceEntry entry;
  entry.action = TraceEntry::Action::kUserDefined;
  entry.stream = current_stream(device_).id;
  entry.label = label;
  state_->history.add(std::move(entry));
}

std::vector<BlockInfo> CachingAllocator::blocks_at_peak() const {
  std::vector<BlockInfo> blocks = state_->history.gone_since_peak();
  for (Heap* heap : state_->directory.all()) {
    const MutexLock guard(heap->lock);
    const auto add = [&](const Chunk& chunk) {
      if (chunk.state == ChunkState::kLive && state_->history.was_at_peak(chunk)) {
        blocks.push_back(info_of(chunk, BlockInfo::State::kActiveAllocated));
      }
    };
    for (const auto& segment : heap->segments()) {
      for (const Chunk* chunk = segment->first; chunk != nullptr; chunk = chunk->next) add(*chunk);
    }
    for (const Chunk* chunk : heap->planned) add(*chunk);
  }
  std::ranges::stable_sort(blocks, [](const BlockInfo& a, const BlockInfo& b) {
    const std::string_view a_op = a.context.op == nullptr ? "" : a.context.op;
    const std::string_view b_op = b.context.op == nullptr ? "" : b.context.op;
    return std::tie(a_op, a.context.module) < std::tie(b_op, b.context.module);
  });
  return blocks;
}

}  // namespace lockstep
