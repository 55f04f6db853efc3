// Requests served by a plan: the arena is a block of the heap, and the plan's blocks lie in it.

#include <algorithm>

#include "core/base/mutex.h"
#include "core/memory/allocator_state.h"

namespace lockstep {

Chunk* CachingAllocator::State::take_planned(const Request& request, HeapLock&,
                                             StepPlanner::Ticket& ticket) {
  Heap& heap = request.heap;
  heap.lock.assert_held();
  StepPlanner& planner = *heap.planner;
  // The planner reuses a place once its last owner is freed, so no planned block may stay pending.
  while (std::ranges::any_of(heap.pending, &Chunk::planned)) reuse_oldest_pending(heap);
  ticket = planner.allocate(request.size);
  if (ticket.offset != MemoryPlan::kUnplanned && heap.arena == nullptr) planner.refuse(ticket);
  if (planner.diverged()) dissolve_arena(heap);
  if (ticket.offset == MemoryPlan::kUnplanned) return nullptr;

  Chunk* const chunk = heap.new_record();
  chunk->address = heap.arena->address + ticket.offset;
  chunk->size = request.size;
  chunk->segment = heap.arena->segment;
  chunk->previous = chunk->next = nullptr;
  chunk->planned = true;
  heap.planned.push_back(chunk);
  return chunk;
}

void CachingAllocator::State::dissolve_arena(Heap& heap) {
  if (heap.arena == nullptr) return;
  Chunk* rest = std::exchange(heap.arena, nullptr);
  std::ranges::sort(heap.planned, {}, &Chunk::address);
  for (Chunk* chunk : heap.planned) {
    if (chunk->address > rest->address) {
      Chunk* const gap = rest;
      rest = heap.split(gap, chunk->address - gap->address);
      heap.join(gap);
    }
    // The chunk takes its part of the arena over and joins the list of chunks.
    chunk->planned = false;
    heap.replace_front(rest, chunk);
    if (rest->size == 0) {
      heap.drop_record(rest);
      rest = nullptr;
      break;
    }
  }
  heap.planned.clear();
  if (rest != nullptr) heap.join(rest);
}

void CachingAllocator::set_planned(bool planned) {
  HeapDirectory& directory = state_->directory;
  const MutexLock guard(directory.lock);
  if (directory.planned == planned) return;
  directory.planned = planned;
  state_->watch(State::kWatchPlans, planned);
  for (const auto& heap : directory.list) {
    const MutexLock heap_guard(heap->lock);
    if (heap->pool != 0) continue;
    if (planned) {
      heap->planner = std::make_unique<StepPlanner>();
    } else {
      state_->dissolve_arena(*heap);
      heap->planner.reset();
    }
  }
}

void CachingAllocator::mark_step(const Stream& stream) {
  Heap& heap = state_->heap_of(stream);
  const MutexLock lock(heap.lock);
  // Small chunks that wait where the last step left them would cut up the memory of the next one,
  // and a step with the same requests could then need more than the step before.
  heap.begin_step();
  if (heap.planner == nullptr) return;
  const bool is_new = heap.planner->mark_step();
  const MemoryPlan* const plan = heap.planner->plan();
  if (plan == nullptr) return;
  if (is_new) state_->dissolve_arena(heap);
  if (heap.arena != nullptr || plan->planned_peak() == 0) return;
  // Blocks that are live now and freed within the step, such as the gradients of the step before,
  // are not in the plan. If the arena does not fit beside them, the cache needs less memory than
  // the plan.
  const auto planned_peak = static_cast<int64_t>(plan->planned_peak());
  const int64_t most = heap.counts.most_requested();
  if (heap.counts.requested() + planned_peak > most + most / 64 + (int64_t{1} << 20)) return;

  // Blocks of the step before that other streams still use may occupy the arena's place.
  while (!heap.pending.empty()) state_->reuse_oldest_pending(heap);
  // No memory is obtained for the arena: the cache has just served such a step with what there is.
  Chunk* const arena = heap.take(plan->planned_peak(), /*small=*/false, state_->options.current());
  if (arena == nullptr) return;
  arena->state = ChunkState::kHeld;
  heap.arena = arena;
}

}  // namespace lockstep
