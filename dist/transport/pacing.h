#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace lockstep::dist {

/// Chooses how long to sleep while MPI has messages pending. MPI's events end a sleep if its
/// network layer has events, which cannot be queried. So sleeps are short until messages have been
/// seen to end after an event.
class SleepPolicy {
 public:
  enum class End : uint8_t { kEvent, kTime, kOther };  ///< what ended a sleep

  std::chrono::microseconds longest(bool pending) const {
    return pending ? limit_ : std::max(limit_, kIdle);
  }
  void slept(End end) {
    end_ = end;
    if (end == End::kTime && limit_ < kBlind) limit_ *= 2;
  }
  /// Call when a message has ended.
  void ended() {
    const End end = std::exchange(end_, End::kOther);
    if (end == End::kEvent) limit_ = std::min(2 * limit_, kMost);
    if (end == End::kTime) limit_ = kLeast;
  }

 private:
  static constexpr std::chrono::microseconds kLeast{50};      ///< after one ended without an event
  static constexpr std::chrono::microseconds kBlind{400};     ///< most while events are unproven
  static constexpr std::chrono::microseconds kIdle{10'000};   ///< least without pending messages
  static constexpr std::chrono::microseconds kMost{102'400};  ///< once events work

  std::chrono::microseconds limit_ = kBlind;
  End end_ = End::kOther;  ///< end of the last sleep, if no message has ended since
};

/// Chooses how long to leave MPI alone while many messages are in flight, so that it is not woken
/// for every packet but has several segments to move each time.
class RestPolicy {
 public:
  // Before each sleep: `adapt`, `rest`, `start`.

  /// Length of the next sleep; 0 if the first event should end it.
  std::chrono::microseconds rest(size_t pending) const {
    return pending >= kMuch && ended_bytes_ > 0 ? rest_ : std::chrono::microseconds(0);
  }
  /// Whether the next sleep is such a rest.
  void start(bool rested) {
    rested_ = rested;
    ended_bytes_ = 0;
  }
  void ended(size_t bytes) { ended_bytes_ += bytes; }
  void adapt() {
    if (!std::exchange(rested_, false)) return;
    if (ended_bytes_ < kFew) rest_ = std::min(2 * rest_, kMost);
    if (ended_bytes_ > 2 * kFew) rest_ = std::max(rest_ / 2, kLeast);
  }

 private:
  static constexpr size_t kMuch = 8;         ///< pending messages from which to rest
  static constexpr size_t kFew = 512 << 10;  ///< bytes that a rest should bring at least
  static constexpr std::chrono::microseconds kLeast{50};
  static constexpr std::chrono::microseconds kMost{2000};

  std::chrono::microseconds rest_ = kLeast;
  size_t ended_bytes_ = 0;  ///< bytes of messages that ended since the last sleep
  bool rested_ = false;
};

}  // namespace lockstep::dist
