#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "core/device/queued_kernel.h"
#include "core/dispatch/dispatcher.h"
#include "core/tensor/stream.h"
#include "kernels/host/host_device.h"

namespace lockstep {

inline constexpr Device kHost0{DeviceType::kHost, 0};
inline constexpr Device kHost1{DeviceType::kHost, 1};

/// A kernel queued as `add.Tensor` that calls a function.
class FunctionKernel final : public QueuedKernel {
 public:
  explicit FunctionKernel(std::function<void()> function)
      : QueuedKernel(dispatcher().find("add.Tensor")), function_(std::move(function)) {}
  void run() override { function_(); }
  void each_access(FunctionRef<void(const TensorArg&, bool)>) const override {}

 private:
  std::function<void()> function_;
};

inline void queue(const Stream& stream, std::function<void()> function) {
  queue_kernel(stream, std::make_unique<FunctionKernel>(std::move(function)));
}

/// Blocks streams until `open` is called or the gate is destroyed.
class Gate {
 public:
  Gate() = default;
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Queues a kernel that waits for the gate.
  void hold(const Stream& stream) const {
    queue(stream, [state = state_] {
      std::unique_lock lock(state->mutex);
      state->held = true;
      state->changed.notify_all();
      state->changed.wait(lock, [&] { return state->open; });
    });
  }
  /// Waits until a stream has reached the gate.
  void wait_until_held() const {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->held; });
  }
  void open() {
    const std::lock_guard lock(state_->mutex);
    state_->open = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
    bool held = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// Changes the options of the host devices while alive.
class HostOptionsGuard {
 public:
  template <class Change>
  explicit HostOptionsGuard(const Change& change) : saved_(host_options()) {
    HostOptions options = saved_;
    change(options);
    set_host_options(options);
  }
  ~HostOptionsGuard() { set_host_options(saved_); }
  HostOptionsGuard(const HostOptionsGuard&) = delete;
  HostOptionsGuard& operator=(const HostOptionsGuard&) = delete;

 private:
  HostOptions saved_;
};

}  // namespace lockstep
