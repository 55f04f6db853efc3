#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <vector>

#include "core/tensor/event.h"
#include "core/tensor/tensor.h"

namespace lockstep::dist {

/// Shared state of a Work.
///
/// The thread that starts the operation writes all members except `error`, `ended` and `done`; the
/// thread that ends it writes these, `done` last. Where another thread queues the operation, that
/// one records `finished`, before it calls `set_queued`.
struct WorkState {
  /// Tensors whose memory the operation uses; released when it ends.
  std::vector<Tensor> tensors;
  Device device;
  /// On a device with streams: the point in the group's stream after which the results are
  /// complete.
  Event finished{/*timing=*/true};
  /// Whether `finished` is recorded only when the operation ends (dist/group/staging.h,
  /// dist/ddp/hook_runner.h).
  bool finished_at_end = false;
  /// 0 from the start until `finished` is recorded, or never will be, if another thread does that.
  std::atomic<uint32_t> queued{1};
  std::exception_ptr error;
  std::chrono::steady_clock::time_point ended;
  std::atomic<uint32_t> done{0};

  /// Ends the operation; `failure` is null for success. Called once, by any thread.
  void finish(std::exception_ptr failure) noexcept;
  void set_queued() noexcept;
  /// Blocks until the operation is queued, or has failed.
  void wait_until_queued() const noexcept;
  bool is_done() const noexcept { return done.load(std::memory_order_acquire) != 0; }
  /// Blocks until `finish` is called.
  void wait_until_done() const noexcept;
};

}  // namespace lockstep::dist
