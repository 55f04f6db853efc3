#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <vector>

#include "core/tensor/event.h"
#include "core/tensor/tensor.h"

namespace lockstep::dist {

/// What a Work is a handle of.
///
/// Everything but `done` is written before `done` is, by the thread that starts the operation, and
/// `error` and `ended` by the one that ends it.
struct WorkState {
  /// Whose memory the operation uses; let go of when it ends.
  std::vector<Tensor> tensors;
  Device device;
  /// Where the device has streams: the place in the group's stream after which the results are
  /// there.
  Event finished{/*timing=*/true};
  /// The event is recorded only as the operation ends (dist/group/staging.h,
  /// dist/ddp/hook_runner.h).
  bool finished_at_end = false;
  std::exception_ptr error;
  std::chrono::steady_clock::time_point ended;
  std::atomic<uint32_t> done{0};

  /// Ends the operation; null for success. Any thread, once.
  void finish(std::exception_ptr failure) noexcept;
  bool is_done() const noexcept { return done.load(std::memory_order_acquire) != 0; }
  /// Blocks until `finish` is called.
  void wait_until_done() const noexcept;
};

}  // namespace lockstep::dist
