#pragma once

#include <atomic>

#include "core/base/mutex.h"
#include "core/cuda/driver.h"

namespace lockstep::cuda {

/// The primary context of one device, which CUDA's runtime libraries use as well. Thread-safe.
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
  /// Throws DeviceError.
  int attribute(CUdevice_attribute which) const;
  /// Returns the context; the first call creates it, which takes some 100 ms. Throws DeviceError.
  CUcontext get();
  /// Whether this process was forked after the context object was made: the driver must not be
  /// called.
  bool lost_in_fork() const noexcept { return forks_ != fork_count(); }

 private:
  const Driver& driver_;
  const int index_;
  const uint32_t forks_ = fork_count();
  CUdevice device_ = 0;
  Mutex mutex_;  ///< held to create the context
  std::atomic<CUcontext> context_ = nullptr;
};

/// While alive, makes the device's context current on this thread; restores the previous one
/// afterwards. If there was none, the context stays current. The current context is not cached,
/// since other libraries change it; asking the driver costs some nanoseconds.
class ContextGuard {
 public:
  /// Throws DeviceError.
  [[nodiscard]] explicit ContextGuard(Context& context);
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  const Driver& driver_;
  CUcontext saved_ = nullptr;  ///< null if there is nothing to restore
};

}  // namespace lockstep::cuda
