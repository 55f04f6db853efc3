#include "dist/work.h"

#include "core/device_runtime.h"
#include "dist/work_state.h"

namespace lockstep::dist {

void WorkState::finish(std::exception_ptr failure) noexcept {
  error = std::move(failure);
  tensors.clear();
  done.store(1, std::memory_order_release);
  done.notify_all();
}

void Work::wait() const {
  if (state_ == nullptr) return;
  if (!state_->finished.is_recorded()) return synchronize();
  if (is_completed() && state_->error) std::rethrow_exception(state_->error);
  current_stream(state_->device).wait_event(state_->finished);
}

void Work::synchronize() const {
  if (state_ == nullptr) return;
  // Without polling: the communication thread may need this thread's core.
  while (!is_completed()) state_->done.wait(0);
  if (state_->error) std::rethrow_exception(state_->error);
}

bool Work::is_completed() const {
  return state_ == nullptr || state_->done.load(std::memory_order_acquire) != 0;
}

}  // namespace lockstep::dist
