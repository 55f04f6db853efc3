#include "core/dispatch/mode.h"

#include <utility>

#include "core/base/scoped_value.h"
#include "core/dispatch/dispatcher.h"

namespace lockstep {

struct ModeStacks {
  static void call_function_mode(const Operator& op, KeySet keys, Stack& stack);
  static void call_dispatch_mode(const Operator& op, KeySet keys, Stack& stack);
  static bool is_recording(const ModeGuard* top) noexcept {
    for (; top != nullptr; top = top->outer_) {
      if (top->dispatch_->records()) return true;
    }
    return false;
  }
};

namespace {

/// The modes that calls of this thread reach now.
thread_local constinit ActiveModes t_modes{};

void include(Key key, bool on) {
  KeySet& included = detail::thread_keys.included;
  included = on ? included | key : included - key;
}

/// While alive, calls reach only the modes from `outer` outwards.
class Outside {
 public:
  Outside(const ModeGuard*& top, Key key, const ModeGuard* outer) : key_(key), top_(top, outer) {
    include(key_, outer != nullptr);
  }
  ~Outside() { include(key_, true); }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  Key key_;
  ScopedValue<const ModeGuard*> top_;
};

}  // namespace

void ModeStacks::call_function_mode(const Operator& op, KeySet keys, Stack& stack) {
  if (t_modes.function == nullptr) {  // the key was included (IncludeKeys) without a mode
    return op.redispatch_boxed(keys & KeySet::below(Key::kFunctionMode), stack);
  }
  const ModeGuard& top = *t_modes.function;
  const Outside outside(t_modes.function, Key::kFunctionMode, top.outer_);
  top.function_->call(op, stack);
}

void ModeStacks::call_dispatch_mode(const Operator& op, KeySet keys, Stack& stack) {
  if (t_modes.dispatch == nullptr) {
    return op.redispatch_boxed(keys & KeySet::below(Key::kDispatchMode), stack);
  }
  const ModeGuard& top = *t_modes.dispatch;
  const Outside outside(t_modes.dispatch, Key::kDispatchMode, top.outer_);
  top.dispatch_->call(op, keys & KeySet::below(Key::kDispatchMode), stack);
}

void DispatchMode::pass_on(const Operator& op, KeySet keys, Stack& stack) {
  if (t_modes.dispatch != nullptr) keys |= Key::kDispatchMode;
  if (keys.empty()) op.throw_missing(keys);
  op.redispatch_boxed(keys, stack);
}

bool is_recording() noexcept { return ModeStacks::is_recording(t_modes.dispatch); }

ModeGuard::ModeGuard(FunctionMode& mode) noexcept : function_(&mode), outer_(t_modes.function) {
  t_modes.function = this;
  include(Key::kFunctionMode, true);
}

ModeGuard::ModeGuard(DispatchMode& mode) noexcept : dispatch_(&mode), outer_(t_modes.dispatch) {
  t_modes.dispatch = this;
  include(Key::kDispatchMode, true);
}

ModeGuard::~ModeGuard() {
  (function_ != nullptr ? t_modes.function : t_modes.dispatch) = outer_;
  include(function_ != nullptr ? Key::kFunctionMode : Key::kDispatchMode, outer_ != nullptr);
}

ActiveModes active_modes() noexcept { return t_modes; }
void set_active_modes(ActiveModes modes) noexcept { t_modes = modes; }

namespace {

const Registration kFunctionModes = dispatcher().register_fallback(
    Key::kFunctionMode, {&ModeStacks::call_function_mode, {__FILE__, __LINE__}});
const Registration kDispatchModes = dispatcher().register_fallback(
    Key::kDispatchMode, {&ModeStacks::call_dispatch_mode, {__FILE__, __LINE__}});

}  // namespace

}  // namespace lockstep
