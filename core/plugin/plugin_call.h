#pragma once

#include <algorithm>
#include <deque>
#include <exception>
#include <string>
#include <vector>

#include "core/plugin/plugin_operator.h"
#include "core/tensor/allocator.h"

namespace lockstep {

/// Memory that a kernel allocated during a call; freed at the end of the call.
struct PluginMemory {
  PluginMemory() = default;
  ~PluginMemory();
  PluginMemory(const PluginMemory&) = delete;
  PluginMemory& operator=(const PluginMemory&) = delete;

  std::vector<Block> blocks;
};

}  // namespace lockstep

/// One call of a function of a plug-in. The kind of function determines which members are set.
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
  std::vector<std::vector<ls_tensor*>> handles;                  ///< handles of list arguments
  std::deque<lockstep::Dims> strides;                            ///< that views of inputs show
  lockstep::PluginMemory memory;                                 ///< kernel
};

/// Holds what a graph pass gives.
struct ls_text {
  std::optional<std::string> text;
};

namespace lockstep {

/// The error of the last failed host function on this thread, until a plug-in passes it on.
class PluginError {
 public:
  /// Stores an error that a plug-in reports.
  static void set(int32_t kind, const char* message);
  /// Stores the exception being handled.
  static void set_current();
  static void clear();
  static const char* message();
  /// Throws the stored error, or one that `status` came without a reason. `where` is appended to
  /// messages that come from plug-ins.
  [[noreturn]] static void raise(const std::string& op, const std::string& where, int status);
};

/// Throws the error for an exception that left a plug-in's function; `what` is null if it was not a
/// std::exception.
[[noreturn]] void throw_escaped(const std::string& op, const std::string& where, const char* what);

/// Calls a function of a plug-in, which returns a status, and throws what it reports, or an error
/// for what escaped from it. `where()` names the function in messages.
template <class Where, class Call>
void checked_call(const std::string& op, const Where& where, const Call& call) {
  int status = 0;
  try {
    status = call();
    if (status == 0) [[likely]] {
      return;
    }
  } catch (const std::exception& escaped) {
    throw_escaped(op, where(), escaped.what());
  } catch (...) {
    throw_escaped(op, where(), nullptr);
  }
  PluginError::raise(op, where(), status);
}

/// Runs the body of a host function: an exception becomes a stored error and status 1.
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
/// Converts a number of the ABI to its enumeration, whose last value is `last`.
template <class E>
E checked_enum(const char* what, int32_t value, E last) {
  if (value < 0 || value > static_cast<int32_t>(last)) {
    throw_unknown_number(what, value, static_cast<int32_t>(last));
  }
  return static_cast<E>(value);
}

/// Fills in the functions for ls_plugin_init.
void add_definition_functions(ls_host& host);
/// Fills in the functions for results that kernels make, and for numbers.
void add_result_functions(ls_host& host);
/// Fills in the functions for kernels of devices with streams.
void add_device_functions(ls_host& host);

/// Whether the type is a number that a kernel may return.
inline bool is_number(const Type& type) {
  return !type.list && !type.optional &&
         (type.base == BaseType::kInt || type.base == BaseType::kFloat ||
          type.base == BaseType::kBool || type.base == BaseType::kScalar);
}

/// Whether there are results and all are numbers.
inline bool returns_numbers(const Schema& schema) {
  const auto number = [](const Return& result) { return is_number(result.type); };
  return !schema.returns.empty() && std::ranges::all_of(schema.returns, number);
}

// Shared by the host functions; defined in core/plugin/plugin_host.cc.
/// Throws unless the plug-in set the view's size.
void fill_view(ls_tensor_view* view, const Tensor& tensor);
OutputSpec checked_spec(const Operator& op, const ls_output_spec* spec);
/// Borrows the data that `value` refers to.
Value value_of(const ls_value& value);
void set_scalar(ls_value& out, const Scalar& scalar);

/// A handle is the pointer to the tensor's TensorImpl.
inline ls_tensor* handle_of(const Tensor& tensor) {
  return reinterpret_cast<ls_tensor*>(tensor.impl());
}
inline Tensor tensor_of(ls_tensor* handle) {
  return Tensor(Ref<TensorImpl>::share(reinterpret_cast<TensorImpl*>(handle)));
}

}  // namespace lockstep
