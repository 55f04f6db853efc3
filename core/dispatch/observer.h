#pragma once

#include "core/dispatch/operator.h"

namespace lockstep {

/// Told when an operator call of a thread begins and when it ends, outermost: before modes,
/// autograd and kernels. Calls that the operator makes itself are told in between. A thread without
/// observers pays nothing for them.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  /// `keys`: who else will handle the call. What it throws ends the call.
  virtual void enter(const Operator& op, KeySet keys) = 0;
  /// Also when the call throws.
  virtual void exit(const Operator& op) noexcept = 0;
};

/// While alive, this thread's calls are told to `observer`, which must live as long. Guards nest;
/// the innermost is told first at entry and last at exit.
class ObserverGuard {
 public:
  explicit ObserverGuard(CallObserver& observer) noexcept;
  ~ObserverGuard();
  ObserverGuard(const ObserverGuard&) = delete;
  ObserverGuard& operator=(const ObserverGuard&) = delete;

 private:
  friend class ObservedCall;

  CallObserver& observer_;
  const ObserverGuard* outer_;
};

/// For a thread that goes on with another's work while that one waits
/// (core/dispatch/thread_state.h).
const ObserverGuard* innermost_observer() noexcept;
void set_innermost_observer(const ObserverGuard* innermost) noexcept;

/// One call between entry and exit; for the dispatcher's templates.
class ObservedCall {
 public:
  ObservedCall(const Operator& op, KeySet keys);
  ~ObservedCall();
  ObservedCall(const ObservedCall&) = delete;
  ObservedCall& operator=(const ObservedCall&) = delete;

 private:
  static void leave(const ObserverGuard* from, const ObserverGuard* until, const Operator& op);

  const Operator& op_;
  const ObserverGuard* from_;
};

}  // namespace lockstep
