#pragma once

#include <atomic>
#include <mutex>

#include "core/cuda/driver.h"

namespace lockstep::cuda {

/// The primary context of one device, which CUDA's own libraries use as well. Thread-safe.
class Context {
 public:
  /// `driver` must outlive it. Throws DeviceError.
  Context(const Driver& driver, int index);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const noexcept { return driver_; }
  CUdevice device() const noexcept { return device_; }
  int index() const noexcept { return index_; }
  /// Made at the first call, which takes some 100 ms, and kept. Throws DeviceError.
  CUcontext get();
  /// Whether this process was forked since: no function of the driver may be called then.
  bool lost_in_fork() const noexcept { return forks_ != fork_count(); }

 private:
  const Driver& driver_;
  const int index_;
  const uint32_t forks_ = fork_count();
  CUdevice device_ = 0;
  std::mutex mutex_;
  std::atomic<CUcontext> context_ = nullptr;
};

/// While alive, a device's context is the thread's current one; after it, the one before. A thread
/// that had none keeps this one. Nothing here remembers which is current, since other libraries
/// change it; the driver's answer costs some nanoseconds.
class ContextGuard {
 public:
  /// Throws DeviceError.
  explicit ContextGuard(Context& context);
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  const Driver& driver_;
  CUcontext saved_ = nullptr;  ///< null where nothing is to be restored
};

}  // namespace lockstep::cuda
