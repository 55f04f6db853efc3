#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/base/scoped_value.h"

namespace lockstep {

/// What the rooms below core/dispatch know of an operator: its name, without the overload.
/// `Operator` derives from it.
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
/// What this thread is doing, to attribute memory and time to it.
struct CurrentScope {
  const OperatorName* op = nullptr;
  std::string_view module;
};
inline thread_local constinit CurrentScope thread_scope{};
}  // namespace detail

/// The structured operator whose results are being made, or null.
inline const OperatorName* current_operator() noexcept { return detail::thread_scope.op; }
/// The path of the innermost module that runs ("h.3.attn"), or "".
inline std::string_view current_module() noexcept { return detail::thread_scope.module; }

/// While alive, allocations of this thread are `op`'s.
class OperatorScope {
 public:
  explicit OperatorScope(const OperatorName& op) noexcept : op_(detail::thread_scope.op, &op) {}

 private:
  ScopedValue<const OperatorName*> op_;
};

/// While alive, this thread runs the module of this path, which must outlive the scope.
class ModuleScope {
 public:
  explicit ModuleScope(std::string_view path) noexcept : module_(detail::thread_scope.module, path) {}

 private:
  ScopedValue<std::string_view> module_;
};

}  // namespace lockstep
