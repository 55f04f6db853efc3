#pragma once

#include "core/dispatch/operator.h"

namespace lockstep {

/// Sees every operator call of a thread as the user made it, before autograd: name, arguments and,
/// after it has passed the call on, results; it may replace any of them. Entered by ModeGuard; the
/// modes of a thread form a stack of which the innermost sees a call first. Calls made inside
/// `call` reach the modes outside this one only.
class FunctionMode {
 public:
  virtual ~FunctionMode() = default;
  /// Must leave the operator's results on the stack, as `op.call_boxed(stack)` does, which passes
  /// the call on. An in-place or out= form's result is its destination, whatever the mode leaves.
  virtual void call(const Operator& op, Stack& stack) = 0;
};

/// The same below autograd: it sees what reaches backends. Composites come as the operators they
/// are made of, and backward's operators come too.
class DispatchMode {
 public:
  virtual ~DispatchMode() = default;
  /// `keys` is what is left of the call's keys; `pass_on(op, keys, stack)` passes the call on.
  virtual void call(const Operator& op, KeySet keys, Stack& stack) = 0;

 protected:
  static void pass_on(const Operator& op, KeySet keys, Stack& stack);
};

/// While alive, `mode`, which must live as long, sees this thread's calls. Guards nest like scopes.
class ModeGuard {
 public:
  explicit ModeGuard(FunctionMode& mode) noexcept;
  explicit ModeGuard(DispatchMode& mode) noexcept;
  ~ModeGuard();
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  friend struct ModeStacks;

  FunctionMode* function_ = nullptr;  ///< one of these two is set
  DispatchMode* dispatch_ = nullptr;
  const ModeGuard* outer_;
};

/// The innermost guards of a thread's two stacks.
struct ActiveModes {
  const ModeGuard* function = nullptr;
  const ModeGuard* dispatch = nullptr;
};
/// For a thread that goes on with another's work while that one waits
/// (core/dispatch/thread_state.h).
ActiveModes active_modes() noexcept;
void set_active_modes(ActiveModes modes) noexcept;

}  // namespace lockstep
