#include "dist/ddp/step_clock.h"

#include <algorithm>

#include "core/device/active_capture.h"

namespace lockstep::dist {

void StepClock::set(Mark& mark) const {
  mark.queued_ = std::chrono::steady_clock::now();
  // A captured event has no time.
  if (is_device() && active_capture() == nullptr) mark.reached_.record(current_stream(device_));
}

StepClock::TimePoint StepClock::time(const Mark& mark) const {
  if (!is_device() || !mark.reached_.is_recorded()) return mark.queued_;
  mark.reached_.synchronize();
  return after_beginning(begun_.reached_.elapsed_ms(mark.reached_));
}

StepClock::TimePoint StepClock::end(const Work& work, const Mark& launched) const {
  const TimePoint earliest = time(launched);
  if (!is_device()) return std::max(work.ended_at(), earliest);
  const std::optional<double> ms = work.ms_after(begun_.reached_);
  return ms ? std::max(after_beginning(*ms), earliest) : earliest;
}

StepClock::TimePoint StepClock::after_beginning(double ms) const {
  const std::chrono::duration<double, std::milli> after(ms);
  return begun_.queued_ + std::chrono::duration_cast<TimePoint::duration>(after);
}

}  // namespace lockstep::dist
