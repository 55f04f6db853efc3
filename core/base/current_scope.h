#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/base/scoped_value.h"

namespace lockstep {

/// The name of an operator, without the overload. `Operator` (core/dispatch) derives from it, so
/// that the rooms below core/dispatch can refer to an operator without depending on it.
class OperatorName {
 public:
  const std::string& name() const noexcept { return name_; }

 protected:
  OperatorName() = default;
  ~OperatorName() = default;
  void set_name(std::string name) { name_ = std::move(name); }

 private:
  std::string name_;
};

namespace detail {
/// The operator and module that this thread is running, to attribute memory and time to them.
struct CurrentScope {
  const OperatorName* op = nullptr;
  std::string_view module;
};
inline thread_local constinit CurrentScope thread_scope{};
}  // namespace detail

/// The structured operator whose outputs are being allocated, or null.
inline const OperatorName* current_operator() noexcept { return detail::thread_scope.op; }
/// Path of the innermost running module ("h.3.attn"), or "".
inline std::string_view current_module() noexcept { return detail::thread_scope.module; }

/// While alive, attributes allocations of this thread to `op`.
class OperatorScope {
 public:
  [[nodiscard]] explicit OperatorScope(const OperatorName& op) noexcept
      : op_(detail::thread_scope.op, &op) {}

 private:
  ScopedValue<const OperatorName*> op_;
};

/// While alive, marks this thread as running the module at `path`, which must outlive the scope.
class ModuleScope {
 public:
  [[nodiscard]] explicit ModuleScope(std::string_view path) noexcept
      : module_(detail::thread_scope.module, path) {}

 private:
  ScopedValue<std::string_view> module_;
};

}  // namespace lockstep
