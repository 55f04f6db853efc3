#include "core/plugin/plugin_operator.h"

#include "core/base/check.h"
#include "core/plugin/plugin_call.h"

namespace lockstep {

namespace {

struct Noted {
  int32_t kind = LS_ERROR;
  std::string message;
  std::exception_ptr exception;  ///< the host's own; if set, `kind` is unused
};
// A pointer, so that the common case, no error, costs only a null check.
thread_local constinit Noted* t_noted = nullptr;

[[noreturn]] void throw_kind(int32_t kind, const std::string& message) {
  switch (kind) {
    case LS_ERROR_SHAPE:
      throw ShapeError(message);
    case LS_ERROR_DTYPE:
      throw DTypeError(message);
    case LS_ERROR_DEVICE:
      throw DeviceError(message);
    case LS_ERROR_INDEX:
      throw IndexError(message);
    case LS_ERROR_DISPATCH:
      throw DispatchError(message);
    case LS_ERROR_AUTOGRAD:
      throw AutogradError(message);
    case LS_ERROR_DATA:
      throw DataError(message);
    case LS_ERROR_OUT_OF_MEMORY:
      throw OutOfMemoryError(message);
    default:
      throw Error(message);
  }
}

std::string where(const PluginFunction& function) {
  return fmt::format("the {} of {}", function.role, function.library);
}

void run(const PluginFunction& function, ls_call& call) {
  PluginError::clear();
  checked_call(
      call.op.name(), [&] { return where(function); },
      [&] { return function.function(function.data, &call); });
}

/// Runs a body or batching rule; results for which it did not call `set_result` stay None.
void run_for_results(const PluginFunction& function, ls_call& call, Stack& stack) {
  const size_t count = call.op.schema().returns.size();
  call.results = &stack.results();
  run(function, call);
  LS_CHECK(stack.results().size() == count, DispatchError,
           "[{}] {} gave too few results: expected {}, got {}.", call.op.name(), where(function),
           count, stack.results().size());
}

}  // namespace

void PluginError::set(int32_t kind, const char* message) {
  const std::string text = message != nullptr ? message : "";
  clear();
  t_noted = new Noted{kind, text, nullptr};
}

void PluginError::set_current() {
  clear();
  t_noted = new Noted{LS_ERROR, "", std::current_exception()};
  try {
    std::rethrow_exception(t_noted->exception);
  } catch (const std::exception& error) {
    t_noted->message = error.what();
  } catch (...) {
    t_noted->message = "unknown";
  }
}

void PluginError::clear() {
  if (t_noted == nullptr) [[likely]] {
    return;
  }
  delete std::exchange(t_noted, nullptr);
}

const char* PluginError::message() { return t_noted != nullptr ? t_noted->message.c_str() : ""; }

void PluginError::raise(const std::string& op, const std::string& where, int status) {
  const std::unique_ptr<Noted> noted(std::exchange(t_noted, nullptr));
  if (noted == nullptr) {
    throw Error(
        fmt::format("[{}] {} failed with status {} and said no reason.", op, where, status));
  }
  if (noted->exception) std::rethrow_exception(noted->exception);
  throw_kind(noted->kind, fmt::format("[{}] {} ({})", op, noted->message, where));
}

void throw_escaped(const std::string& op, const std::string& where, const char* what) {
  PluginError::clear();
  throw Error(fmt::format(
      "[{}] {} threw an exception: {}. Plug-ins report errors with fail() and a status.", op, where,
      what != nullptr ? what : "of a type that is unknown here"));
}

void throw_unknown_number(const char* what, int32_t value, int32_t last) {
  throw DispatchError(
      fmt::format("[plugin] unknown {}: expected 0 to {}, got {}.", what, last, value));
}

void run_plugin_init(int (*init)(const ls_host*, ls_plugin*), ls_plugin& plugin) {
  PluginError::clear();
  checked_call(
      "plugin", [&] { return fmt::format("ls_plugin_init of {}", plugin.library); },
      [&] { return init(&plugin_host(), &plugin); });
  plugin.initialising = false;
  PluginError::clear();
}

namespace plugin_entry {

Outputs rule(const Operator& op, std::span<const Value> arguments) {
  const ls_op& definition = *static_cast<const ls_op*>(op.definition_data());
  Outputs outputs;
  ls_call call{.op = op, .values = arguments, .outputs = &outputs};
  run(definition.rule, call);
  LS_CHECK(outputs.specs.size() == definition.fresh_count, DispatchError,
           "[{}] {} described another number of results: expected {}, got {}.", op.name(),
           where(definition.rule), definition.fresh_count, outputs.specs.size());
  return outputs;
}

void dynamic_kernel(const Operator& op, KeySet keys, Stack& stack) {
  const Key backend = keys.highest();
  const auto& kernel = *static_cast<const PluginKernel*>(op.kernel_data(backend));
  const PluginFunction& function = kernel.function;
  const auto run_it = [&](const PackedCall& packed) {
    ls_call call{.op = op, .packed = &packed, .made = &stack.results()};
    run(function, call);
  };
  run_dynamic_kernel(op, backend, kernel.strides, stack.arguments(),
                     const_cast<PluginFunction*>(&function), run_it);
  stack.results().resize(op.schema().returns.size());
  for (size_t i = 0; i < stack.results().size(); ++i) {
    LS_CHECK(!stack.results()[i].is_none(), DispatchError, "[{}] {} did not make result {}: {}.",
             op.name(), where(function), i, op.schema().to_string());
  }
}

void body(const Operator& op, KeySet, Stack& stack) {
  ls_call call{.op = op, .values = stack.arguments()};
  run_for_results(static_cast<const ls_op*>(op.definition_data())->body, call, stack);
}

void kernel(const PackedCall& packed) {
  ls_call call{.op = packed.op, .packed = &packed};
  run(*static_cast<const PluginFunction*>(packed.data), call);
}

Gradients derivative(VjpContext& context, std::span<const Tensor> grads) {
  const ls_op& definition = *static_cast<const ls_op*>(context.data());
  Gradients gradients;
  ls_call call{.op = *definition.defined,
               .values = context.arguments(),
               .vjp = &context,
               .grads = grads,
               .gradients = &gradients};
  run(definition.derivative, call);
  return gradients;
}

void batching(const Operator& op, uint64_t batched, Stack& stack) {
  ls_call call{.op = op, .values = stack.arguments(), .batched = &batched};
  run_for_results(static_cast<const ls_op*>(op.batching_data())->batching, call, stack);
}

}  // namespace plugin_entry

}  // namespace lockstep
