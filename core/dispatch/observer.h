#pragma once

#include "core/dispatch/operator.h"

namespace lockstep {

/// Callbacks at the begin and end of each operator call of a thread. They run outermost: before
/// modes, autograd and kernels. Calls that the operator makes itself are reported in between. A
/// thread without observers pays nothing for them.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  /// Runs before the call. `keys`: the keys that will handle it; `call` has the arguments, which
  /// are borrowed. An exception ends the call.
  virtual void enter(const Operator& op, KeySet keys, const Stack& call) = 0;
  /// Runs after the call, also when it throws. `call` has the results as well; none when it threw.
  virtual void exit(const Operator& op, const Stack& call) noexcept = 0;
};

/// While alive, this thread's calls are reported to `observer`, which must outlive the guard.
/// Guards nest; the innermost is called first at entry and last at exit.
class ObserverGuard {
 public:
  [[nodiscard]] explicit ObserverGuard(CallObserver& observer) noexcept;
  ~ObserverGuard();
  ObserverGuard(const ObserverGuard&) = delete;
  ObserverGuard& operator=(const ObserverGuard&) = delete;

 private:
  friend class ObservedCall;

  CallObserver& observer_;
  const ObserverGuard* outer_;
};

/// Get and set the calling thread's observers: for a worker thread that continues the work of a
/// thread that waits for it (core/dispatch/thread_state.h).
const ObserverGuard* innermost_observer() noexcept;
void set_innermost_observer(const ObserverGuard* innermost) noexcept;

/// Scope of one observed call: `enter` in the constructor, `exit` in the destructor, which must see
/// the results on `call`. Used by the dispatcher's templates.
class ObservedCall {
 public:
  ObservedCall(const Operator& op, KeySet keys, const Stack& call);
  ~ObservedCall();
  ObservedCall(const ObservedCall&) = delete;
  ObservedCall& operator=(const ObservedCall&) = delete;

 private:
  void leave(const ObserverGuard* from, const ObserverGuard* until) const;

  const Operator& op_;
  const Stack& call_;
  const ObserverGuard* from_;
};

}  // namespace lockstep
