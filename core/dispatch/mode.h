#pragma once

#include "core/dispatch/operator.h"

namespace lockstep {

/// Intercepts every operator call of a thread as the user made it, before autograd: name, arguments
/// and, after passing the call on, results; it may replace any of them. ModeGuard enters a mode;
/// the modes of a thread form a stack, and the innermost sees a call first. Calls made inside
/// `call` reach only the modes outside this one.
class FunctionMode {
 public:
  virtual ~FunctionMode() = default;
  /// Must leave the operator's results on the stack. `op.call_boxed(stack)` passes the call on and
  /// does that. An in-place or out= form returns its destination, whatever the mode leaves there.
  virtual void call(const Operator& op, Stack& stack) = 0;
};

/// Intercepts the operator calls of a thread below autograd, as they reach backends: composites
/// arrive as the operators they are made of, and the operators of backward arrive as well.
class DispatchMode {
 public:
  virtual ~DispatchMode() = default;
  /// `keys` are the keys of the call not handled yet; `pass_on(op, keys, stack)` passes it on.
  virtual void call(const Operator& op, KeySet keys, Stack& stack) = 0;
  /// Whether the calls are kept, to be run again on tensors with other elements. What is computed
  /// from tensors then has to be computed by calls, and not be taken from a cache.
  virtual bool records() const { return false; }

 protected:
  static void pass_on(const Operator& op, KeySet keys, Stack& stack);
};

/// While alive, `mode` intercepts this thread's calls. `mode` must outlive the guard. Guards nest
/// like scopes.
class ModeGuard {
 public:
  [[nodiscard]] explicit ModeGuard(FunctionMode& mode) noexcept;
  [[nodiscard]] explicit ModeGuard(DispatchMode& mode) noexcept;
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
/// Get and set the calling thread's modes: for a worker thread that continues the work of a thread
/// that waits for it (core/dispatch/thread_state.h).
ActiveModes active_modes() noexcept;
/// Whether a dispatch mode of the calling thread `records()`.
bool is_recording() noexcept;
void set_active_modes(ActiveModes modes) noexcept;

}  // namespace lockstep
