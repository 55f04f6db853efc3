#include "core/dispatch/thread_state.h"

namespace lockstep {

namespace {

void adopt(const ThreadState& state) noexcept {
  detail::thread_keys = state.keys;
  detail::inference_mode = state.inference_mode;
  detail::thread_device = state.device;
  detail::thread_phase = state.phase;
  set_active_modes(state.modes);
  set_innermost_observer(state.observer);
}

}  // namespace

ThreadState ThreadState::capture() noexcept {
  return {detail::thread_keys,  detail::inference_mode, detail::thread_device,
          detail::thread_phase, active_modes(),         innermost_observer()};
}

ThreadState ThreadState::without_modes() const noexcept {
  ThreadState rest = *this;
  rest.keys.included =
      rest.keys.included - (KeySet(Key::kFunctionMode) | Key::kDispatchMode | Key::kObserver);
  rest.modes = {};
  rest.observer = nullptr;
  return rest;
}

ThreadStateGuard::ThreadStateGuard(const ThreadState& state) noexcept
    : saved_(ThreadState::capture()) {
  adopt(state);
}
ThreadStateGuard::~ThreadStateGuard() { adopt(saved_); }

}  // namespace lockstep
