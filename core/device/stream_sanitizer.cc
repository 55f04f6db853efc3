#include "core/device/stream_sanitizer.h"

#include <pthread.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/current_scope.h"
#include "core/base/log_text.h"
#include "core/base/mutex.h"
#include "core/device/access_history.h"

namespace lockstep::stream_sanitizer {

namespace detail {
constinit std::atomic<bool> on = false;
}

namespace {

/// Two conflicting uses that no event orders.
struct Race {
  MemoryUseRef earlier;
  uintptr_t begin;  ///< start of the shared bytes
  uintptr_t end;
};

/// The checker's state: clocks of streams and events, live blocks, uses of memory.
class CheckerState {
 public:
  size_t index(const Stream& stream) {
    const auto key = std::make_tuple(stream.device.type, stream.device.index, stream.id);
    const auto [place, is_new] = indices_.try_emplace(key, streams_.size());
    if (is_new) {
      streams_.push_back(stream);
      clocks_.emplace_back();
    }
    return place->second;
  }

  /// The clock of the work that is queued on `stream` next.
  VectorClock& next(size_t stream) {
    clocks_[stream].join(program_);
    return clocks_[stream];
  }

  std::optional<Race> find_race(const MemoryUse& use, const VectorClock& now) const {
    std::optional<Race> race;
    history_.each_use(use.footprint, [&](const MemoryUseRef& old, uintptr_t begin, uintptr_t end) {
      const bool races = (use.written || old->written) && !old->happened_before(now) &&
                         overlap(use.footprint, old->footprint) == Overlap::kYes;
      if (races) race = Race{old, begin, end};
      return races;
    });
    return race;
  }

  void add(const MemoryUseRef& use, const VectorClock& now) {
    history_.add(use, now);
    if (history_.size() > forget_at_) {
      history_.forget(program_);
      forget_at_ = 2 * history_.size() + 1024;
    }
  }

  void record(const void* event, const Stream& stream) { events_[event] = next(index(stream)); }
  void wait(const Stream& stream, const void* event) {
    const auto place = events_.find(event);
    if (place != events_.end()) next(index(stream)).join(place->second);
  }
  void event_done(const void* event) {
    const auto place = events_.find(event);
    if (place != events_.end()) program_.join(place->second);
  }
  void event_destroyed(const void* event) { events_.erase(event); }
  void stream_done(const Stream& stream) { program_.join(next(index(stream))); }
  void device_done(Device device) {
    for (size_t i = 0; i < streams_.size(); ++i) {
      if (streams_[i].device == device) program_.join(clocks_[i]);
    }
  }

  void allocate(const Stream& stream, uintptr_t begin, size_t bytes) {
    const uintptr_t end = begin + bytes;
    auto at = allocations_.upper_bound(begin);
    if (at != allocations_.begin() && std::prev(at)->second->end > begin) --at;
    while (at != allocations_.end() && at->first < end) at = allocations_.erase(at);
    const size_t owner = index(stream);
    allocations_[begin] =
        std::make_shared<Allocation>(Allocation{begin, end, owner, next(owner), false});
  }
  void free(uintptr_t address) {
    if (const auto allocation = find_allocation(address)) allocation->freed = true;
  }
  std::shared_ptr<Allocation> find_allocation(uintptr_t address) const {
    auto place = allocations_.upper_bound(address);
    if (place == allocations_.begin()) return nullptr;
    --place;
    return place->second->end > address ? place->second : nullptr;
  }

  std::string describe(const Race& race, const MemoryUse& later) const;

 private:
  std::string what_is_missing(const MemoryUse& earlier, const MemoryUse& later) const;

  std::vector<Stream> streams_;
  std::map<std::tuple<DeviceType, int8_t, int32_t>, size_t> indices_;
  std::vector<VectorClock> clocks_;  ///< clock of each stream's last queued work
  VectorClock program_;              ///< clock of the work that the program knows to be done
  std::unordered_map<const void*, VectorClock> events_;
  std::map<uintptr_t, std::shared_ptr<Allocation>> allocations_;  ///< by begin address
  AccessHistory history_;
  size_t forget_at_ = 1024;
};

std::string CheckerState::what_is_missing(const MemoryUse& earlier, const MemoryUse& later) const {
  const auto event = [&](const std::string& first, std::string_view after) {
    return fmt::format("No event orders them: record one on {}{} and let {} wait for it.", first,
                       after, to_string(streams_[later.stream]));
  };
  const std::string stream = to_string(streams_[earlier.stream]);
  // The allocator made the new block's own stream wait for all uses that it knew of.
  if (later.allocation && earlier.allocation != later.allocation &&
      earlier.happened_before(later.allocation->at_allocation)) {
    return event(to_string(streams_[later.allocation->owner]), ", whose block it now is,");
  }
  const bool changed_hands =
      earlier.allocation && later.allocation && earlier.allocation != later.allocation;
  if (!changed_hands || earlier.stream == earlier.allocation->owner) {
    return event(stream, fmt::format(" after `{}`", earlier.op));
  }
  if (earlier.after_free) {
    return fmt::format("The block had been freed when `{}` was queued: keep the tensor until then.",
                       earlier.op);
  }
  return fmt::format(
      "The block was freed while {} used it: call record_stream with {} before its tensor is "
      "freed.",
      stream, stream);
}

std::string CheckerState::describe(const Race& race, const MemoryUse& later) const {
  const MemoryUse& earlier = *race.earlier;
  std::string place = fmt::format("{} bytes at {:#x}", race.end - race.begin, race.begin);
  if (const auto& allocation = later.allocation) {
    place +=
        fmt::format(", {} bytes into a block of {} of {}", race.begin - allocation->begin,
                    allocation->end - allocation->begin, to_string(streams_[allocation->owner]));
  }
  std::string text =
      fmt::format("[{}] on {} {} memory that `{}` on {} may not have {} yet ({}). {}", later.op,
                  to_string(streams_[later.stream]), later.written ? "writes" : "reads", earlier.op,
                  to_string(streams_[earlier.stream]), earlier.written ? "written" : "read", place,
                  what_is_missing(earlier, later));
  if (earlier.stack) {
    text += fmt::format("\n`{}` was queued here:\n{}", earlier.op, earlier.stack->describe());
  }
  if (later.stack) {
    text += fmt::format("\n`{}` is queued here:\n{}", later.op, later.stack->describe());
  }
  return text;
}

using Handler = std::function<void(const std::string& report)>;

struct Sanitizer {
  Mutex mutex;
  CheckerState checker LS_GUARDED_BY(mutex);
  bool keep_stacks = false;  ///< set before main()
  std::shared_ptr<const Handler> handler LS_GUARDED_BY(mutex);
  std::atomic<int64_t> reports = 0;
};
Sanitizer& sanitizer() {
  static Sanitizer* const instance = new Sanitizer();  // leaked: used by static destructors
  return *instance;
}

/// Runs before main(): reads the environment and registers fork handlers, so that no other thread
/// holds the mutex in the child. Registered before all other handlers, hence locked last: a thread
/// that holds another lock (the allocator's, say) may be waiting for this one.
__attribute__((constructor(101))) void start() {
  Sanitizer& state = sanitizer();
  const char* value = std::getenv("LOCKSTEP_STREAM_SANITIZER");
  const std::string_view text = value == nullptr ? "" : value;
  // An exception before main() would end every program; `lockstep` refuses the value.
  if (!text.empty() && text != "0" && text != "1" && text != "stacks") {
    write_log(stderr,
              fmt::format(
                  "[stream sanitizer] LOCKSTEP_STREAM_SANITIZER cannot be \"{}\": expected 0, 1 or "
                  "stacks. It is off.\n",
                  text));
  }
  state.keep_stacks = text == "stacks";
  detail::on = text == "1" || text == "stacks";
  // Not analysed: the mutex is held across the fork.
  (void)pthread_atfork([]() LS_NO_THREAD_SAFETY_ANALYSIS { sanitizer().mutex.lock(); },
                       []() LS_NO_THREAD_SAFETY_ANALYSIS { sanitizer().mutex.unlock(); },
                       []() LS_NO_THREAD_SAFETY_ANALYSIS { sanitizer().mutex.unlock(); });
}

template <class F>
void with_checker(F&& change) {
  Sanitizer& state = sanitizer();
  const MutexLock lock(state.mutex);
  change(state.checker);
}

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

struct Access {
  Footprint footprint;
  bool written;
};

/// Checks the accesses of one kernel, then records them. A report that is thrown leaves them
/// unrecorded, since the kernel is then not queued.
void use(const Stream& stream, std::string_view op, std::span<const Access> accesses) {
  Sanitizer& state = sanitizer();
  UniqueLock lock(state.mutex);
  const size_t index = state.checker.index(stream);
  std::shared_ptr<const CallStack> stack;
  if (state.keep_stacks) {
    stack = std::make_shared<const CallStack>(CallStack::capture(1).outside_library());
  }
  VectorClock now = state.checker.next(index);
  const uint64_t tick = now.tick(index);
  std::vector<MemoryUseRef> uses;
  std::string report;
  for (const Access& access : accesses) {
    if (access.footprint.empty()) continue;
    const auto allocation = state.checker.find_allocation(access.footprint.begin());
    uses.push_back(std::make_shared<const MemoryUse>(
        MemoryUse{index, tick, op, access.written, allocation && allocation->freed,
                  access.footprint, allocation, stack}));
    if (!report.empty()) continue;
    if (const auto race = state.checker.find_race(*uses.back(), now)) {
      report = state.checker.describe(*race, *uses.back());
    }
  }
  if (!report.empty()) {
    ++state.reports;
    const auto handler = state.handler;
    lock.unlock();
    if (handler == nullptr) throw DeviceError(report);
    (*handler)(report);
    lock.lock();
  }
  state.checker.next(index).join(now);
  for (const MemoryUseRef& each : uses) state.checker.add(each, now);
}

}  // namespace

void enable(bool on) {
  Sanitizer& state = sanitizer();
  const MutexLock lock(state.mutex);
  state.checker = CheckerState();
  state.reports = 0;
  detail::on = on;
}

void set_report_handler(std::function<void(const std::string& report)> handler) {
  Sanitizer& state = sanitizer();
  auto shared = handler ? std::make_shared<const Handler>(std::move(handler)) : nullptr;
  const MutexLock lock(state.mutex);
  state.handler = std::move(shared);
}

int64_t reports() { return sanitizer().reports; }

void on_kernel(const Stream& stream, const QueuedKernel& kernel) {
  std::vector<Access> accesses;
  kernel.each_access([&](const TensorArg& tensor, bool written) {
    if (tensor.defined()) accesses.push_back({Footprint(tensor), written});
  });
  use(stream, kernel.op().name(), accesses);
}

void on_kernel(const Stream& stream, const OperatorName& op,
               std::span<const KernelAccess> tensors) {
  std::vector<Access> accesses;
  for (const auto& [tensor, written] : tensors) {
    if (tensor->defined()) accesses.push_back({Footprint(*tensor), written});
  }
  use(stream, op.name(), accesses);
}

void on_use(const Stream& stream, const char* op, const void* address, size_t bytes, bool written) {
  const Access access{Footprint(address, bytes), written};
  use(stream, op, std::span(&access, 1));
}

void on_record(const void* event, const Stream& stream) {
  with_checker([&](CheckerState& checker) { checker.record(event, stream); });
}
void on_wait(const Stream& stream, const void* event) {
  with_checker([&](CheckerState& checker) { checker.wait(stream, event); });
}
void on_event_done(const void* event) {
  with_checker([&](CheckerState& checker) { checker.event_done(event); });
}
void on_event_destroyed(const void* event) {
  with_checker([&](CheckerState& checker) { checker.event_destroyed(event); });
}
void on_stream_done(const Stream& stream) {
  with_checker([&](CheckerState& checker) { checker.stream_done(stream); });
}
void on_device_done(Device device) {
  with_checker([&](CheckerState& checker) { checker.device_done(device); });
}

void on_allocate(const Stream& stream, const void* address, size_t bytes) {
  if (bytes == 0) return;
  with_checker([&](CheckerState& checker) { checker.allocate(stream, number(address), bytes); });
}
void on_free(const Stream&, const void* address, size_t) {
  with_checker([&](CheckerState& checker) { checker.free(number(address)); });
}
void on_record_stream(const void*, const Stream&) {
  // Nothing to do: the allocator will record events and wait for them, which the checker sees.
}

}  // namespace lockstep::stream_sanitizer
