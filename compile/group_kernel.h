#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/base/function_ref.h"
#include "core/dispatch/element_loop.h"

namespace lockstep::compiler {

class PendingKernel;  // compile/native/kernel_builder.h
struct NativeSource;

/// The kernel that is made for a group of nodes, and whether it has taken the place of what ran the
/// group before. Thread-safe, but for `request`, which is called before others run the group.
class GroupKernel {
 public:
  GroupKernel() = default;
  /// Makes one that shares the kernel, for a group of the same calls on values of other sizes.
  GroupKernel(const GroupKernel& alike);
  GroupKernel& operator=(const GroupKernel& alike);

  /// Has the kernel made, which takes the others' place in the first run behind that, if it
  /// computes their bits and takes no longer.
  void request(NativeSource source);
  /// The kernel; null if there was no request.
  const PendingKernel* pending() const { return kernel_.get(); }
  /// Why there is no kernel, or none that may run; empty if there is one, none was asked for, or
  /// what ran before is faster.
  std::string refusal() const;
  /// Whether the kernel has taken the others' place.
  bool runs() const { return trial_.load(std::memory_order_relaxed) == KernelTrial::kFaster; }
  /// Whether what runs the group will not change any more, or nothing runs it: of two programs for
  /// backward one may stay unused.
  bool is_settled() const;

  /// The kernel to run, if any; `attempt` tries one that is there for the first time.
  LoopKernel choose(FunctionRef<KernelTrial(LoopKernel)> attempt) const;

 private:
  std::shared_ptr<const PendingKernel> kernel_;
  mutable std::atomic<KernelTrial> trial_ = KernelTrial::kNone;
  mutable std::atomic<bool> has_run_ = false;    ///< whether the group has
  mutable std::atomic<bool> was_there_ = false;  ///< whether the kernel was, when the group ran
};

}  // namespace lockstep::compiler
