#include "core/dispatch/observer.h"

namespace lockstep {

namespace {

thread_local constinit const ObserverGuard* t_innermost = nullptr;

}  // namespace

ObserverGuard::ObserverGuard(CallObserver& observer) noexcept
    : observer_(observer), outer_(t_innermost) {
  t_innermost = this;
  detail::thread_keys.included |= Key::kObserver;
}

ObserverGuard::~ObserverGuard() {
  t_innermost = outer_;
  if (outer_ == nullptr) {
    detail::thread_keys.included = detail::thread_keys.included - Key::kObserver;
  }
}

const ObserverGuard* innermost_observer() noexcept { return t_innermost; }
void set_innermost_observer(const ObserverGuard* innermost) noexcept { t_innermost = innermost; }

ObservedCall::ObservedCall(const Operator& op, KeySet keys, const Stack& call)
    : op_(op), call_(call), from_(t_innermost) {
  for (const ObserverGuard* guard = from_; guard != nullptr; guard = guard->outer_) {
    try {
      guard->observer_.enter(op, keys, call);
    } catch (...) {  // call `exit` of the observers that were entered
      leave(from_, guard);
      throw;
    }
  }
}

ObservedCall::~ObservedCall() { leave(from_, nullptr); }

void ObservedCall::leave(const ObserverGuard* from, const ObserverGuard* until) const {
  if (from == until) return;
  leave(from->outer_, until);
  from->observer_.exit(op_, call_);
}

}  // namespace lockstep
