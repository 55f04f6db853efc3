#include "dist/group/work.h"

#include <thread>

#include "core/base/spans/span.h"
#include "core/device/device_runtime.h"
#include "core/device/stream_sanitizer.h"
#include "dist/group/work_state.h"

namespace lockstep::dist {

void WorkState::finish(std::exception_ptr failure) noexcept {
  error = std::move(failure);
  ended = std::chrono::steady_clock::now();
  tensors.clear();
  done.store(1, std::memory_order_release);
  done.notify_all();
  set_queued();
}

void WorkState::set_queued() noexcept {
  queued.store(1, std::memory_order_release);
  queued.notify_all();
}

void WorkState::wait_until_queued() const noexcept {
  if (queued.load(std::memory_order_acquire) != 0) return;
  const Span span(SpanKind::kWait, kWaitForRanks);
  while (queued.load(std::memory_order_acquire) == 0) queued.wait(0);
}

void WorkState::wait_until_done() const noexcept {
  // Without polling: the communication thread may need this thread's core.
  if (is_done()) return;
  const Span span(SpanKind::kWait, kWaitForRanks);
  while (!is_done()) done.wait(0);
}

void Work::wait() const {
  if (state_ == nullptr) return;
  state_->wait_until_queued();
  if (state_->finished_at_end) state_->wait_until_done();
  if (!state_->finished.is_recorded()) return synchronize();
  if (state_->is_done() && state_->error) std::rethrow_exception(state_->error);
  current_stream(state_->device).wait_event(state_->finished);
}

void Work::synchronize() const {
  if (state_ == nullptr) return;
  state_->wait_until_done();
  // The stream reaches the event at once; querying it tells the stream sanitizer of the wait.
  while (!is_completed()) std::this_thread::yield();
  if (state_->error) std::rethrow_exception(state_->error);
  if (state_->finished_at_end) state_->finished.synchronize();
}

std::chrono::steady_clock::time_point Work::ended_at() const {
  return state_ != nullptr && state_->is_done() ? state_->ended
                                                : std::chrono::steady_clock::time_point();
}

std::optional<double> Work::ms_after(const Event& start) const {
  if (state_ == nullptr) return std::nullopt;
  state_->wait_until_done();
  if (state_->error || !state_->finished.is_recorded()) return std::nullopt;
  state_->finished.synchronize();
  return start.elapsed_ms(state_->finished);
}

bool Work::is_completed() const {
  if (state_ == nullptr) return true;
  if (!state_->is_done()) return false;
  const bool event_tells = state_->finished_at_end || stream_sanitizer::enabled();
  return !event_tells || state_->finished.query();
}

}  // namespace lockstep::dist
