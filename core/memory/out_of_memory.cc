// Builds the report of an OutOfMemoryError.

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/check.h"
#include "core/base/current_scope.h"
#include "core/base/mutex.h"
#include "core/memory/address_space.h"
#include "core/memory/allocator_state.h"

namespace lockstep {

namespace {

constexpr size_t kHolders = 8;

std::string human(int64_t bytes) {
  constexpr double kKiB = 1024;
  const auto number = static_cast<double>(bytes);
  if (number < kKiB) return fmt::format("{} bytes", bytes);
  if (number < kKiB * kKiB) return fmt::format("{:.1f} KiB", number / kKiB);
  if (number < kKiB * kKiB * kKiB) return fmt::format("{:.1f} MiB", number / (kKiB * kKiB));
  return fmt::format("{:.2f} GiB", number / (kKiB * kKiB * kKiB));
}

/// Live blocks of one origin.
struct Holder {
  int64_t bytes = 0;
  int64_t blocks = 0;
};
using Origin = std::tuple<std::string, std::string,
                          std::string>;  // operator, module, call site

struct Findings {
  int64_t live = 0;
  int64_t pending = 0;
  int64_t cached = 0;
  int64_t fragmented = 0;  ///< free, but in chunks smaller than the request
  int64_t other_streams = 0;
  std::map<PoolId, int64_t> pools;
  std::map<Origin, Holder> holders;
};

void add_heap(Findings& findings, const Heap& heap, const Heap& asking, size_t size)
    LS_REQUIRES(heap.lock) {
  int64_t reserved = 0;
  for (const auto& segment : heap.segments()) {
    for (const Chunk* chunk = segment->first; chunk != nullptr; chunk = chunk->next) {
      const auto bytes = static_cast<int64_t>(chunk->size);
      if (chunk->has_memory()) reserved += bytes;
      if (chunk->state == ChunkState::kFree || chunk->state == ChunkState::kWaiting) {
        findings.cached += bytes;
        if (&heap != &asking) findings.other_streams += bytes;
        if (chunk->size < size) findings.fragmented += bytes;
      } else if (chunk->state == ChunkState::kPending) {
        findings.pending += bytes;
      }
    }
  }
  if (heap.pool != 0) findings.pools[heap.pool] += reserved;
  const auto add_holder = [&](const Chunk& chunk) {
    const AllocationContext context = context_of(chunk);
    const std::string site = context.stack.empty() ? "" : context.stack.call_site();
    Holder& holder =
        findings.holders[{context.op != nullptr ? context.op : "", context.module, site}];
    holder.bytes += static_cast<int64_t>(chunk.size);
    ++holder.blocks;
    findings.live += static_cast<int64_t>(chunk.size);
  };
  for (const auto& segment : heap.segments()) {
    for (const Chunk* chunk = segment->first; chunk != nullptr; chunk = chunk->next) {
      if (chunk->state == ChunkState::kLive) add_holder(*chunk);
    }
  }
  for (const Chunk* chunk : heap.planned) {
    if (chunk->state == ChunkState::kLive) add_holder(*chunk);
  }
}

std::string describe_holders(const Findings& findings) {
  std::vector<std::pair<Origin, Holder>> largest(findings.holders.begin(), findings.holders.end());
  std::ranges::stable_sort(largest, std::greater{},
                           [](const auto& each) { return each.second.bytes; });
  std::string text;
  for (size_t i = 0; i < std::min(largest.size(), kHolders); ++i) {
    const auto& [origin, holder] = largest[i];
    const auto& [op, module, site] = origin;
    text += fmt::format("\n    {} in {} block{}: {}{}{}", human(holder.bytes), holder.blocks,
                        holder.blocks == 1 ? "" : "s", op.empty() ? "no operator" : op,
                        module.empty() ? "" : " in " + module,
                        site.empty() ? "" : ", called from " + site);
  }
  return text;
}

/// Memory of a GPU that is neither left nor this allocator's; 0 where it is little, such as the
/// driver's own.
size_t held_by_others(Device device, const DeviceMemory& memory, int64_t reserved) {
  if (device.type != DeviceType::kCUDA) return 0;
  const size_t known = memory.available() + static_cast<size_t>(reserved);
  const size_t others = memory.total() > known ? memory.total() - known : 0;
  return others > memory.total() / 16 ? others : 0;
}

std::string describe_remedies(const Findings& findings, const AllocatorOptions& options,
                              int64_t requested, size_t budget, size_t total, bool has_granules) {
  std::string text;
  const auto add = [&](const std::string& line) { text += "\n    " + line; };
  if (static_cast<size_t>(requested) > budget) {
    add("The request alone is above the budget: lower the batch size or split "
        "the tensor.");
    return text;
  }
  if (!options.expandable_segments && has_granules && findings.fragmented >= requested) {
    add("Free memory lies in pieces: "
        "LOCKSTEP_ALLOC_CONF=expandable_segments:True joins them.");
  } else if (findings.fragmented >= requested) {
    add("Free memory lies in pieces that blocks on loan keep apart.");
  }
  for (const auto& [pool, bytes] : findings.pools) {
    if (bytes >= requested / 4) {
      add(fmt::format("Pool {} keeps {} for itself: release it if its graph is not needed.", pool,
                      human(bytes)));
    }
  }
  if (budget < total) {
    add(fmt::format("per_process_memory_fraction allows {} of {}.",
                    human(static_cast<int64_t>(budget)), human(static_cast<int64_t>(total))));
  }
  if (const size_t left = address_space_left(); left != SIZE_MAX) {
    add(fmt::format("Addresses: `ulimit -v` leaves this process {} of them.",
                    human(static_cast<int64_t>(left))));
  }
  add("A lower batch size, activation checkpoints, or freeing one of the "
      "holders above.");
  return text;
}

}  // namespace

// Not analysed: `lock` is the lock of the heap, which the analysis does not know.
void CachingAllocator::State::throw_out_of_memory(const Request& request,
                                                  HeapLock& lock) LS_NO_THREAD_SAFETY_ANALYSIS {
  lock.unlock();
  ++rare.ooms;
  Findings findings;
  for (const Heap* heap : directory.all()) {
    const MutexLock guard(heap->lock);
    add_heap(findings, *heap, request.heap, request.size);
  }
  const size_t limit = budget();
  int64_t in_pools = 0;
  for (const auto& [pool, bytes] : findings.pools) in_pools += bytes;
  const auto requested = static_cast<int64_t>(request.bytes);
  const OperatorName* const op = current_operator();
  std::string report = fmt::format(
      "[allocator] out of memory: {} ({} bytes) asked for on {}{}{}{}, but "
      "that much is not to be "
      "had.\n"
      "  Budget {}, of which {} is reserved; the device itself has {} left.\n"
      "  On loan {}; given back but in use by other streams {}; cached {}, of "
      "which {} in pieces "
      "too small for this request and {} with other streams; private pools "
      "hold {}.",
      human(requested), request.bytes, to_string(request.heap.stream),
      op != nullptr ? fmt::format(" by {}", op->name()) : "",
      current_module().empty() ? "" : fmt::format(" in {}", current_module()),
      request.heap.pool != 0 ? fmt::format(" from pool {}", request.heap.pool) : "",
      human(static_cast<int64_t>(std::min(limit, size_t{INT64_MAX}))), human(charged.load()),
      human(static_cast<int64_t>(std::min(memory.available(), size_t{INT64_MAX}))),
      human(findings.live), human(findings.pending), human(findings.cached),
      human(findings.fragmented), human(findings.other_streams), human(in_pools));
  if (!findings.holders.empty()) report += "\n  Largest holders:" + describe_holders(findings);
  const Device device = request.heap.stream.device;
  if (const size_t others = held_by_others(device, memory, charged.load()); others > 0) {
    report += fmt::format("\n  Other processes hold about {} of {}: `nvidia-smi` names them.",
                          human(static_cast<int64_t>(others)), to_string(device));
  }
  report += "\n  What would help:" + describe_remedies(findings, request.options, requested, limit,
                                                       memory.total(), memory.granularity() != 0);

  if ((watches.load(std::memory_order_relaxed) & kWatchHistory) != 0) {
    history.add(TraceEntry::Action::kOom, memory.available(), request.size, request.heap.stream);
  }
  for (const auto& observer : callbacks.observers()) observer(request.bytes, report);
  throw OutOfMemoryError(report);
}

int CachingAllocator::add_free_memory_callback(std::function<bool()> callback) {
  return state_->callbacks.add(std::move(callback));
}

void CachingAllocator::remove_free_memory_callback(int number) {
  state_->callbacks.remove_free_memory(number);
}

int CachingAllocator::add_oom_observer(
    std::function<void(size_t bytes, const std::string& report)> observer) {
  return state_->callbacks.add(std::move(observer));
}

void CachingAllocator::remove_oom_observer(int number) {
  state_->callbacks.remove_observer(number);
}

}  // namespace lockstep
