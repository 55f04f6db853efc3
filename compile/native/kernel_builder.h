#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "compile/native/native_build.h"
#include "compile/native/native_library.h"
#include "compile/native/native_source.h"
#include "core/dispatch/element_loop.h"

namespace lockstep::compiler {

/// A loop kernel that is being made by another thread. Thread-safe.
class PendingKernel {
 public:
  PendingKernel(NativeSource source, BuildPlace place)
      : source_(std::move(source)), place_(std::move(place)) {}
  ~PendingKernel();
  PendingKernel(const PendingKernel&) = delete;
  PendingKernel& operator=(const PendingKernel&) = delete;

  /// Null until it is there, and for ever if it cannot be made. It may be called while this object
  /// exists.
  LoopKernel get() const noexcept { return kernel_.load(std::memory_order_acquire); }
  /// Whether it is there or cannot be made.
  bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Returns when it is done.
  void wait() const noexcept;
  /// Why it cannot be made; empty if it can, or is not done.
  std::string failure() const { return is_done() ? failure_ : std::string(); }

  const NativeSource& source() const { return source_; }

 private:
  friend class KernelBuilder;
  void make(const BuildLimits& limits) noexcept;
  void end(std::string failure) noexcept;

  NativeSource source_;
  BuildPlace place_;
  std::optional<NativeLibrary> library_;
  std::string module_;   ///< the bytes of what a compiler of the backend made
  std::string failure_;  ///< does not change once done
  std::atomic<LoopKernel> kernel_ = nullptr;
  std::atomic<bool> done_ = false;
};

/// Has a kernel made in the background, behind those that were requested before, or returns the one
/// of the same text that exists. Kernels that nobody holds any more are not made. Where it is kept
/// and which compiler makes it is read from the environment here, in the caller's thread.
std::shared_ptr<const PendingKernel> request_kernel(NativeSource source);

}  // namespace lockstep::compiler
