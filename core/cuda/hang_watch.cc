#include "core/cuda/hang_watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"
#include "core/cuda/runtime.h"
#include "core/cuda/silence.h"
#include "core/cuda/stream_marks.h"
#include "core/device/rank_waits.h"

namespace lockstep::cuda {

struct HangWatch::State {
  using Clock = std::chrono::steady_clock;

  State(Device on, std::chrono::milliseconds time, Told tell)
      : device(on),
        limit(time),
        interval(std::min<Clock::duration>(std::chrono::seconds(1), limit / 64)),
        runtime(runtime_of(on)),
        told(std::move(tell)) {}

  void look();
  void count();
  std::string text(bool in_a_call) const LS_REQUIRES(lock);

  const Device device;
  const Clock::duration limit;
  const Clock::duration interval;
  Runtime& runtime;
  const Told told;

  mutable Mutex lock;
  CondVar changed;
  StreamMarks::Look found LS_GUARDED_BY(lock);
  uint64_t looks LS_GUARDED_BY(lock) = 0;
  bool looks_no_more LS_GUARDED_BY(lock) = false;
  bool counts_no_more LS_GUARDED_BY(lock) = false;
  ServiceThread looking;
  ServiceThread counting;
};

/// The first thread.
void HangWatch::State::look() {
  for (;;) {
    StreamMarks::Look now;
    try {
      now = runtime.look_at_marks(device.index);
    } catch (const std::exception&) {
      // The threads that use the device get its error themselves.
    }
    UniqueLock guard(lock);
    found = now;
    ++looks;
    changed.wait_for(guard, interval, [&]() LS_REQUIRES(lock) { return looks_no_more; });
    if (looks_no_more) return;
  }
}

/// The second thread.
void HangWatch::State::count() {
  Silence silence(limit, 2 * interval);
  Silence in_a_call(limit / 2, 2 * interval);
  UniqueLock guard(lock);
  StreamMarks::Look before;
  uint64_t looks_before = 0;
  uint64_t waits_before = waits_for_ranks(device);
  Clock::time_point then = Clock::now();
  for (;;) {
    changed.wait_for(guard, interval, [&]() LS_REQUIRES(lock) { return counts_no_more; });
    if (counts_no_more) return;
    const Clock::time_point now = Clock::now();
    const uint64_t waits = waits_for_ranks(device);
    const auto passed = now - std::exchange(then, now);
    const bool looked = looks != looks_before;
    const bool is_in_a_call = in_a_call.add(looked, passed);
    const bool is_idle = found.stream < 0 && looked;
    const bool moved = is_idle || found.reached != before.reached || waits != waits_before;
    if (silence.add(moved, passed)) {
      const std::string what = text(is_in_a_call || found.stream < 0);
      guard.unlock();
      return told(what);
    }
    before = found;
    looks_before = looks;
    waits_before = waits;
  }
}

std::string HangWatch::State::text(bool in_a_call) const {
  const double seconds = std::chrono::duration<double>(limit).count();
  const std::string hangs =
      in_a_call ? fmt::format("{} hangs: a call of its driver has not returned for {} s",
                              to_string(device), seconds)
                : fmt::format(
                      "{} hangs: stream {} has not come to the end of {} for {} s; queued "
                      "there last is {}",
                      to_string(device), found.stream, text_of(found.before), seconds,
                      text_of(found.last));
  return fmt::format(
      "[cuda] {}. A kernel does not end, or the GPU or its driver has failed: `dmesg | grep Xid` "
      "and `lockstep doctor --gpu` tell. Resume from the last checkpoint, on another GPU or after "
      "a reset of this one.",
      hangs);
}

HangWatch::HangWatch(Device device, std::chrono::milliseconds limit, Told told)
    : state_(std::make_unique<State>(device, limit, std::move(told))) {
  state_->counting.start("gpu hang watch", [state = state_.get()] { state->count(); });
  state_->looking.start("gpu look", [state = state_.get()] { state->look(); });
}

HangWatch::~HangWatch() {
  State& state = *state_;
  if (state.counting.left_behind()) {
    (void)state_.release();
    return;
  }
  {
    const MutexLock guard(state.lock);
    state.looks_no_more = true;
    state.changed.notify_all();
  }
  state.looking.join();
  {
    const MutexLock guard(state.lock);
    state.counts_no_more = true;
    state.changed.notify_all();
  }
  state.counting.join();
}

uint64_t HangWatch::looks() const {
  const MutexLock guard(state_->lock);
  return state_->looks;
}

}  // namespace lockstep::cuda
