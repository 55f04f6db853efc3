#pragma once

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "core/plugin/plugin_operator.h"
#include "core/tensor/allocator.h"

namespace lockstep {

/// Memory that a kernel has on loan; it goes back with the call.
struct PluginMemory {
  PluginMemory() = default;
  ~PluginMemory();
  PluginMemory(const PluginMemory&) = delete;
  PluginMemory& operator=(const PluginMemory&) = delete;

  std::vector<Block> blocks;
};

}  // namespace lockstep

/// One call of a function of a plug-in. Which members are set says what the function is.
struct ls_call {
  const lockstep::Operator& op;
  std::span<const lockstep::Value> values;       ///< rule, body, batching rule, derivative
  lockstep::Outputs* outputs = nullptr;          ///< rule
  const lockstep::PackedCall* packed = nullptr;  ///< kernel
  lockstep::VjpContext* vjp = nullptr;           ///< derivative
  std::span<const lockstep::Tensor> grads;       ///< derivative
  lockstep::Gradients* gradients = nullptr;      ///< derivative
  lockstep::SmallVector<lockstep::Value, 4>* results = nullptr;  ///< body, batching rule
  lockstep::SmallVector<lockstep::Value, 4>* made = nullptr;     ///< kernel without a rule
  const uint64_t* batched = nullptr;                             ///< batching rule
  std::vector<std::vector<ls_tensor*>> handles;  ///< what list arguments were given as
  lockstep::PluginMemory memory;                 ///< kernel
};

namespace lockstep {

/// Why the last host function of this thread failed, until a plug-in passes it on.
class PluginError {
 public:
  /// Notes what a plug-in says.
  static void set(int32_t kind, const char* message);
  /// Notes the exception being handled.
  static void set_current();
  static void clear();
  static const char* message();
  /// Throws what is noted, or that `status` came without a reason. `where` ends the messages that
  /// come from plug-ins.
  [[noreturn]] static void raise(const std::string& op, const std::string& where, int status);
};

/// A plug-in's function threw `what`; null when that is no std::exception.
[[noreturn]] void throw_escaped(const std::string& op, const std::string& where, const char* what);

/// Runs the body of a host function: an exception becomes a noted error and status 1.
template <class F>
int guarded(F&& body) noexcept {
  try {
    body();
    return 0;
  } catch (...) {
    PluginError::set_current();
    return 1;
  }
}

[[noreturn]] void throw_unknown_number(const char* what, int32_t value, int32_t last);
/// A number of the ABI as the enumeration that it stands for, whose last value is `last`.
template <class E>
E checked_enum(const char* what, int32_t value, E last) {
  if (value < 0 || value > static_cast<int32_t>(last)) {
    throw_unknown_number(what, value, static_cast<int32_t>(last));
  }
  return static_cast<E>(value);
}

/// Fills in the functions for ls_plugin_init.
void add_definition_functions(ls_host& host);
/// Fills in those for results that kernels make, and for numbers.
void add_result_functions(ls_host& host);
/// Fills in those for kernels of devices with queues.
void add_device_functions(ls_host& host);

/// A number, as a result of a kernel may be.
inline bool is_number(const Type& type) {
  return !type.list && !type.optional &&
         (type.base == BaseType::kInt || type.base == BaseType::kFloat ||
          type.base == BaseType::kBool || type.base == BaseType::kScalar);
}

/// Whether there are results, and all are numbers.
inline bool returns_numbers(const Schema& schema) {
  const auto number = [](const Return& result) { return is_number(result.type); };
  return !schema.returns.empty() && std::ranges::all_of(schema.returns, number);
}

// What several host functions need; in core/plugin/plugin_host.cc.
/// Throws unless the plug-in set the view's size.
void fill_view(ls_tensor_view* view, const Tensor& tensor);
OutputSpec checked_spec(const Operator& op, const ls_output_spec* spec);
/// Borrows what `value` refers to.
Value value_of(const ls_value& value);
void set_scalar(ls_value& out, const Scalar& scalar);

/// Handles are the tensors' own counted objects.
inline ls_tensor* handle_of(const Tensor& tensor) {
  return reinterpret_cast<ls_tensor*>(tensor.impl());
}
inline Tensor tensor_of(ls_tensor* handle) {
  return Tensor(Ref<TensorImpl>::share(reinterpret_cast<TensorImpl*>(handle)));
}

}  // namespace lockstep
