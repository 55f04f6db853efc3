#include "core/memory/caching_allocator.h"

#include <chrono>
#include <exception>
#include <thread>

#include "core/base/check.h"
#include "core/base/current_scope.h"
#include "core/base/mutex.h"
#include "core/base/spans/span.h"
#include "core/device/device_runtime.h"
#include "core/device/stream_sanitizer.h"
#include "core/device/waits.h"
#include "core/memory/allocator_state.h"
#include "core/memory/units.h"

namespace lockstep {

thread_local constinit std::pair<CachingAllocator*, PoolId> CachingAllocator::State::thread_pool{};

namespace {

/// Polls until `done()`: `synchronize` would consume the error of a kernel, which is meant for the
/// caller. A failed query means that the stream was destroyed after it was waited for.
template <class Done>
void wait_until(const Done& done) noexcept {
  constexpr std::chrono::microseconds kPause(20);
  try {
    while (!done()) std::this_thread::sleep_for(kPause);
  } catch (const std::exception&) {
  }
}

constexpr size_t kLargestRequest = size_t{1} << 62;  // more than any device has; rounding up cannot
                                                     // overflow

AllocatorOptions checked(AllocatorOptions options) {
  check_allocator_options(options, "options");
  return options;
}

/// Returns the option's number of steps between powers of two for a size.
int divisions_for(size_t bytes, const std::vector<int>& divisions) {
  const size_t size_class = bytes >> 20 == 0 ? 0 : static_cast<size_t>(std::bit_width(bytes >> 20));
  return divisions[std::min(size_class, divisions.size() - 1)];
}

}  // namespace

CachingAllocator::State::State(CachingAllocator& owner, Device device, DeviceMemory& memory,
                               AllocatorOptions wanted)
    : owner(owner),
      device(device),
      memory(memory),
      unit(memory.block_unit()),
      synchronous(device_runtime(device.type) == nullptr),
      addressless(device.type == DeviceType::kMeta),
      options(checked(std::move(wanted))) {}

CachingAllocator::State::~State() {
  for (const auto& heap : directory.list) {
    if (!heap->segments().empty()) wait_for(heap->stream, "its allocator goes");
    for (const Heap::Leaving& leaving : heap->leaving) unmap_emptied(leaving.chunks, heap->stream);
    for (const auto& segment : heap->segments()) {
      void* const address = reinterpret_cast<void*>(segment->address);
      if (!segment->is_range()) {
        open(segment->address, segment->size);
        memory.release(address, segment->size);
        continue;
      }
      open(segment->address, segment->granules.size() * segment->granularity);
      std::vector<Granule> granules;
      for (size_t i = 0; i < segment->granules.size(); ++i) {
        if (!segment->is_mapped(i)) continue;
        granules.push_back(segment->granules[i]);
        memory.unmap(reinterpret_cast<void*>(segment->address + i * segment->granularity),
                     segment->granularity);
      }
      if (!granules.empty()) memory.destroy(granules);
      memory.unreserve(address, segment->size);
    }
  }
}

CachingAllocator::CachingAllocator(Device device, DeviceMemory& memory, AllocatorOptions options)
    : device_(device), state_(std::make_unique<State>(*this, device, memory, std::move(options))) {
  set_options(this->options());
}

CachingAllocator::~CachingAllocator() = default;

void CachingAllocator::forbid_idle_memory() { state_->poisons = !state_->addressless; }

Heap& CachingAllocator::State::make_heap(int32_t stream, PoolId pool) {
  LS_CHECK(stream >= 0, DeviceError, "[allocator] {} is no stream: it was moved from.",
           to_string(Stream{device, stream}));
  const MutexLock guard(directory.lock);
  Heap*& heap = directory.by_stream[{pool, stream}];
  // Reuse the heap of a destroyed stream: its work is done, so its memory may serve a new stream.
  if (heap == nullptr && pool == 0) {
    const auto orphan =
        std::ranges::find_if(directory.list, [](const auto& h) { return h->stream.id < 0; });
    if (orphan != directory.list.end()) {
      heap = orphan->get();
      const MutexLock heap_guard(heap->lock);
      heap->stream = {device, stream};
    }
  }
  if (heap == nullptr) {
    if (directory.unused.empty()) {
      directory.list.push_back(std::make_unique<Heap>(table, Stream{device, stream}, pool, unit));
      heap = directory.list.back().get();
    } else {
      heap = directory.unused.back();
      directory.unused.pop_back();
    }
    const MutexLock heap_guard(heap->lock);
    heap->stream = {device, stream};
    heap->pool = pool;
    if (pool != 0) {
      heap->keeps_layout = true;
      directory.pools[pool].heaps.push_back(heap);
    } else if (directory.planned) {
      heap->planner = std::make_unique<StepPlanner>();
    }
    if (directory.list.size() > 1) directory.has_several = true;
  }
  if (pool == 0) directory.set_direct(stream, heap);
  return *heap;
}

void CachingAllocator::stream_destroyed(const Stream& stream) noexcept {
  HeapDirectory& directory = state_->directory;
  const MutexLock guard(directory.lock);
  const auto found = directory.by_stream.find({0, stream.id});
  if (found == directory.by_stream.end()) return;
  Heap& heap = *found->second;
  directory.by_stream.erase(found);
  directory.set_direct(stream.id, nullptr);
  const MutexLock heap_guard(heap.lock);
  heap.stream.id = -1;  // a runtime may give the number to another stream
}

size_t CachingAllocator::State::rounded(size_t bytes, const AllocatorOptions& options) const {
  LS_CHECK(bytes <= kLargestRequest, OutOfMemoryError,
           "[allocator] out of memory: {} bytes are more than any device has. "
           "Was a negative size "
           "converted?",
           bytes);
  if (!options.roundup_power2_divisions.empty()) {
    const auto divisions =
        static_cast<size_t>(std::max(1, divisions_for(bytes, options.roundup_power2_divisions)));
    if (divisions > 1 && bytes > unit * divisions) {
      const size_t step = std::max(std::bit_floor(bytes) / divisions, unit);
      return round_up(bytes, step);
    }
  }
  return whole_units(bytes);
}

Block CachingAllocator::allocate(size_t bytes, const Stream& stream) {
  if (bytes == 0) return {nullptr, 0, nullptr, this};
  State& state = *state_;
  Heap& heap = state.heap_of(stream);
  if (bytes <= Heap::kLargestWaiting && !state.is_watched() && !stream_sanitizer::enabled()) {
    const MutexLock guard(heap.lock);
    if (Chunk* const chunk = heap.take_waiting(state.whole_units(bytes))) [[likely]] {
      return state.lend(heap, chunk, bytes, /*small=*/true);
    }
  }
  return state.allocate_slowly(heap, bytes);
}

Block CachingAllocator::State::allocate_slowly(Heap& heap, size_t bytes) {
  const AllocatorOptions& options = this->options.current();
  const size_t size = rounded(bytes, options);
  const Request request{heap, bytes, size, size <= Heap::kLargestSmall, options};
  const uint32_t watch = watches.load(std::memory_order_relaxed);
  if ((watch & kWatchPools) != 0) reap_pools(/*may_wait=*/true);

  std::unique_ptr<CallStack> stack;
  const bool wants_stack = (watch & kWatchHistory) != 0 && history.stacks();
  if (wants_stack || (options.record_call_sites && !request.small)) {
    stack = std::make_unique<CallStack>(CallStack::capture(2));
  }

  HeapLock lock(heap.lock);
  request.heap.lock.assert_held();  // it is `heap`
  StepPlanner::Ticket ticket;
  Chunk* chunk = heap.planner != nullptr ? take_planned(request, lock, ticket) : nullptr;
  if (chunk == nullptr) {
    try {
      chunk = find(request, lock);
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      if (heap.planner != nullptr) heap.planner->free(ticket);
      throw;
    }
  }
  const Block block = lend(heap, chunk, bytes, request.small);
  chunk->ticket = ticket;
  chunk->stack = std::move(stack);
  chunk->watched = ticket.index >= 0 || chunk->stack != nullptr;
  if ((watch & kWatchHistory) != 0) history.lend(*chunk, heap.stream);
  const void* const address = reinterpret_cast<void*>(chunk->address);
  const auto allocated = static_cast<int64_t>(chunk->size);
  lock.unlock();
  if ((watch & kWatchSpans) != 0) {
    record_moment(SpanKind::kMemory, "allocate", reinterpret_cast<uintptr_t>(address), allocated);
  }
  if (stream_sanitizer::enabled() && !addressless) {
    stream_sanitizer::on_allocate(heap.stream, address, block.bytes);
  }
  return block;
}

void CachingAllocator::free(const Block& block) noexcept {
  if (block.data == nullptr && block.cookie == nullptr) return;
  State& state = *state_;
  Chunk* const chunk = state.record_of(block);
  if (chunk == nullptr) [[unlikely]] {
    ++state.rare.wrong_frees;
    return;
  }
  Heap& heap = *chunk->heap;
  heap.lock.lock();
  if (!state.is_current(block, chunk)) [[unlikely]] {
    heap.lock.unlock();
    ++state.rare.wrong_frees;
    return;
  }
  if (chunk->watched || state.is_watched() || stream_sanitizer::enabled()) [[unlikely]] {
    State::HeapLock lock(heap.lock, std::adopt_lock);
    return state.free_slowly(heap, chunk, lock);
  }
  heap.counts.remove(chunk->size, chunk->requested, chunk->small);
  state.publish_if_due(heap);
  state.close(heap, chunk);
  heap.put(chunk);
  heap.lock.unlock();
}

// Not analysed: `lock` is the lock of the heap, which the analysis does not know.
void CachingAllocator::State::free_slowly(Heap& heap, Chunk* chunk,
                                          HeapLock& lock) noexcept LS_NO_THREAD_SAFETY_ANALYSIS {
  const uint32_t watch = watches.load(std::memory_order_relaxed);
  const bool recorded = (watch & kWatchHistory) != 0;
  const uintptr_t address = chunk->address;
  const size_t size = chunk->size;
  // Before the block can be given to another thread, whose record must be later.
  if ((watch & kWatchSpans) != 0) {
    record_moment(SpanKind::kMemory, "free", address, -static_cast<int64_t>(size));
  }
  if (recorded) history.give_back(*chunk, heap.stream);
  heap.counts.remove(size, chunk->requested, chunk->small);
  publish_if_due(heap);

  if (chunk->uses != nullptr) {
    for (const Stream& stream : chunk->uses->streams) {
      try {
        Event event = stream.device == device ? events.take() : Event();
        event.record(stream);
        chunk->uses->events.push_back(std::move(event));
      } catch (const std::exception&) {
        wait_until([&] { return stream.query(); });
      }
    }
    chunk->uses->streams.clear();
  }
  if (chunk->uses != nullptr && !chunk->uses->events.empty()) {
    chunk->state = ChunkState::kPending;
    heap.counts.add_pending(size, chunk->small);
    heap.pending.push_back(chunk);
  } else {
    complete(heap, chunk);
  }
  const Stream stream = heap.stream;
  lock.unlock();
  if (stream_sanitizer::enabled() && !addressless) {
    stream_sanitizer::on_free(stream, reinterpret_cast<void*>(address), size);
  }
  if ((watches.load(std::memory_order_relaxed) & kWatchPools) != 0) reap_pools(/*may_wait=*/false);
}

void CachingAllocator::State::complete(Heap& heap, Chunk* chunk) noexcept {
  if ((watches.load(std::memory_order_relaxed) & kWatchHistory) != 0) {
    history.free_completed(*chunk, heap.stream);
  }
  chunk->uses.reset();
  chunk->stack.reset();
  chunk->watched = false;
  const StepPlanner::Ticket ticket = std::exchange(chunk->ticket, {});
  if (heap.planner != nullptr) heap.planner->free(ticket);
  close(heap, chunk);
  if (chunk->planned) {
    chunk->planned = false;
    std::erase(heap.planned, chunk);
    heap.drop_record(chunk);
  } else {
    heap.put(chunk);
  }
}

template <class Note>
void CachingAllocator::State::note_use(const Block& block, const Stream& stream, Note note) {
  if (synchronous || block.cookie == nullptr) return;
  Chunk* const chunk = record_of(block);
  if (chunk == nullptr) return;
  HeapLock lock(chunk->heap->lock);
  if (!is_current(block, chunk) || chunk->heap->stream == stream) return;
  if (chunk->uses == nullptr) chunk->uses = std::make_unique<ChunkUses>();
  note(*chunk->uses);
  chunk->watched = true;
  lock.unlock();
  if (stream_sanitizer::enabled()) stream_sanitizer::on_record_stream(block.data, stream);
}

void CachingAllocator::record_stream(const Block& block, const Stream& stream) {
  state_->note_use(block, stream, [&](ChunkUses& uses) {
    std::vector<Stream>& streams = uses.streams;
    if (std::ranges::find(streams, stream) == streams.end()) streams.push_back(stream);
  });
}

void CachingAllocator::record_use(const Block& block, const Stream& stream) {
  state_->note_use(block, stream, [&](ChunkUses& uses) {
    // A later mark of the same stream includes the earlier one.
    const auto known = std::ranges::find(uses.events, stream, &Event::stream);
    if (known != uses.events.end()) return known->record(stream);
    Event event = stream.device == state_->device ? state_->events.take() : Event();
    event.record(stream);
    uses.events.push_back(std::move(event));
  });
}

void CachingAllocator::State::return_event(Event event) noexcept {
  if (event.stream().device == device) events.put(std::move(event));
}

void CachingAllocator::State::wait_for(const Stream& stream, const char* why) noexcept {
  if (synchronous) return;
  try {
    Event event = events.take();
    event.record(stream);
    wait_for(std::move(event), stream, why);
  } catch (const std::exception&) {
    wait_until([&] { return stream.query(); });
  }
}

void CachingAllocator::State::wait_for(Event event, const Stream& stream, const char* why) {
  if (!event.query()) {
    const OperatorName* const op = current_operator();
    count_hidden_wait(op != nullptr ? op->name() : "allocate", stream, why);
    ++rare.synchronizations;
    wait_until([&] { return event.query(); });
  }
  return_event(std::move(event));
}

bool CachingAllocator::State::is_idle(const Stream& stream) const noexcept {
  if (synchronous) return true;
  try {
    return stream.query();
  } catch (const std::exception&) {
    return true;
  }
}

void CachingAllocator::State::reuse_oldest_pending(Heap& heap) noexcept {
  Chunk* const chunk = heap.pending.front();
  heap.pending.pop_front();
  for (Event& event : chunk->uses->events) {
    try {
      heap.stream.wait_event(event);
      ++rare.stream_waits;
    } catch (const std::exception&) {
      wait_until([&] { return event.query(); });
    }
    return_event(std::move(event));
  }
  heap.counts.remove_pending(chunk->size, chunk->small);
  complete(heap, chunk);
}

void CachingAllocator::State::reuse_finished(Heap& heap) noexcept {
  const auto is_done = [](const Event& event) {
    try {
      return event.query();
    } catch (const std::exception&) {
      return true;
    }
  };
  for (size_t i = 0; i < heap.pending.size();) {
    Chunk* const chunk = heap.pending[i];
    if (!std::ranges::all_of(chunk->uses->events, is_done)) {
      ++i;
      continue;
    }
    heap.pending.erase(heap.pending.begin() + static_cast<std::ptrdiff_t>(i));
    for (Event& event : chunk->uses->events) return_event(std::move(event));
    heap.counts.remove_pending(chunk->size, chunk->small);
    complete(heap, chunk);
  }
}

void* CachingAllocator::raw_alloc(size_t bytes, const Stream& stream) {
  const Block block = allocate(bytes, stream);
  if (block.data == nullptr) return nullptr;
  state_->raw_blocks.add(block);
  return block.data;
}

void CachingAllocator::raw_delete(void* address) {
  if (address == nullptr) return;
  const std::optional<Block> block = state_->raw_blocks.take(address);
  LS_CHECK(block.has_value(), DeviceError,
           "[raw_delete] {} is not on loan from the allocator of {}: expected "
           "an address that "
           "raw_alloc returned, once.",
           address, to_string(device_));
  free(*block);
}

AllocatorOptions CachingAllocator::options() const { return state_->options.current(); }

void CachingAllocator::set_options(const AllocatorOptions& options) {
  check_allocator_options(options, "options");
  state_->options.set(options, [&] {
    state_->watch(State::kWatchSizes, !options.roundup_power2_divisions.empty());
    state_->watch(State::kWatchPolling, options.stream_reuse == StreamReuse::kPoll);
  });
}

size_t CachingAllocator::budget() const { return state_->budget(); }

int64_t CachingAllocator::wrong_frees() const { return state_->rare.wrong_frees; }

// Not analysed: the locks stay held when the function returns.
void CachingAllocator::lock_all() LS_NO_THREAD_SAFETY_ANALYSIS {
  State& state = *state_;
  state.directory.lock.lock();
  for (const auto& heap : state.directory.list) heap->lock.lock();
  state.table.lock();
  state.counts.lock();
  state.history.lock();
  state.events.lock();
  state.callbacks.lock();
  state.raw_blocks.lock();
  state.options.lock();
  state.baseline.lock();
}

// Not analysed: lock_all took the locks.
void CachingAllocator::unlock_all() LS_NO_THREAD_SAFETY_ANALYSIS {
  State& state = *state_;
  state.baseline.unlock();
  state.options.unlock();
  state.raw_blocks.unlock();
  state.callbacks.unlock();
  state.events.unlock();
  state.history.unlock();
  state.counts.unlock();
  state.table.unlock();
  for (const auto& heap : state.directory.list) heap->lock.unlock();
  state.directory.lock.unlock();
}

}  // namespace lockstep
