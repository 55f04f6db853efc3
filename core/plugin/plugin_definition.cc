// Host functions for ls_plugin_init: they store the definitions, and check what can be checked for
// each part alone.

#include "core/base/check.h"
#include "core/plugin/plugin_call.h"

namespace lockstep {

namespace {

static_assert(LS_STRIDES_MATRIX == static_cast<int>(Strides::kMatrix));
static_assert(LS_AUTOCAST_PROMOTE == static_cast<int>(Autocast::kPromote));

void check_open(const ls_plugin* plugin) {
  LS_CHECK(plugin != nullptr && plugin->initialising, DispatchError,
           "[plugin] operators are defined in ls_plugin_init only.");
}

ls_op& checked_op(ls_op* op) {
  LS_CHECK(op != nullptr, DispatchError,
           "[plugin] no operator: expected what define returned, got NULL.");
  check_open(op->plugin);
  return *op;
}

PluginFunction checked_function(const ls_plugin& plugin, const char* role, ls_function function,
                                void* data) {
  LS_CHECK(function != nullptr, DispatchError, "[plugin] the {} is NULL: expected a function.",
           role);
  return {function, data, role, plugin.library, plugin.images.get()};
}

/// Signature of a kernel of this schema: "Tensor, float -> Tensor".
std::string kernel_type(const Schema& schema) {
  std::string text;
  for (const Argument& argument : schema.arguments) {
    text += (text.empty() ? "" : ", ") + to_string(argument.type);
  }
  text += " ->";
  const auto fresh = fresh_results(schema);
  for (size_t i = 0; i < fresh.size(); ++i) {
    text += (i == 0 ? " " : ", ") + to_string(schema.returns[fresh[i]].type);
  }
  return text;
}

void check_kernel(const Schema& schema, const char* type) {
  if (type == nullptr) return;
  const std::string wanted = kernel_type(schema);
  LS_CHECK(wanted == type, DispatchError,
           "[{}] the kernel's type contradicts the schema: expected \"{}\", got \"{}\". {}",
           schema.full_name(), wanted, type, schema.to_string());
}

PluginKernel checked_kernel(const ls_plugin& plugin, int32_t backend, int32_t strides,
                            ls_function function, void* data) {
  const Key key = backend_key(checked_enum("backend", backend, DeviceType::kPrivate4));
  LS_CHECK(key != Key::kMeta, DispatchError,
           "[plugin] meta takes no kernel: only the shape rule runs there.");
  return {key, checked_enum("strides", strides, Strides::kMatrix),
          checked_function(plugin, "kernel", function, data)};
}

ls_op* define(ls_plugin* plugin, const char* text, const char* doc) {
  ls_op* made = nullptr;
  guarded([&] {
    check_open(plugin);
    LS_CHECK(text != nullptr, DispatchError, "[plugin] the schema is NULL.");
    auto op = std::make_unique<ls_op>();
    op->plugin = plugin;
    op->text = text;
    op->schema = parse_schema(text);
    op->fresh_count = fresh_results(op->schema).size();
    op->dynamic = returns_numbers(op->schema);
    op->doc = doc != nullptr ? doc : "";
    const std::string name = op->schema.full_name();
    LS_CHECK(name.find("::") != std::string::npos, DispatchError,
             "[plugin] operator \"{}\" has no namespace: expected a name such as \"my::{}\".", name,
             name);
    const Operator* known = dispatcher().find_or_null(name);
    LS_CHECK(known == nullptr, DispatchError, "[{}] defined twice: at {} and at {}.", name,
             to_string(known->site()), plugin->library);
    for (const auto& other : plugin->operators) {
      LS_CHECK(other->schema.full_name() != name, DispatchError,
               "[{}] defined twice by one plug-in.", name);
    }
    made = plugin->operators.emplace_back(std::move(op)).get();
  });
  return made;
}

int set_rule(ls_op* op, ls_function rule, void* data) {
  return guarded(
      [&] { checked_op(op).rule = checked_function(*op->plugin, "shape rule", rule, data); });
}

int set_body(ls_op* op, ls_function body, void* data) {
  return guarded([&] { checked_op(op).body = checked_function(*op->plugin, "body", body, data); });
}

int set_dynamic(ls_op* op) {
  return guarded([&] { checked_op(op).dynamic = true; });
}

int set_kernel(ls_op* op, int32_t backend, int32_t strides, const char* type, ls_function kernel,
               void* data) {
  return guarded([&] {
    check_kernel(checked_op(op).schema, type);
    op->kernels.push_back(checked_kernel(*op->plugin, backend, strides, kernel, data));
  });
}

int set_derivative(ls_op* op, const char* const* saves, uint32_t save_count, ls_function derivative,
                   void* data) {
  return guarded([&] {
    for (uint32_t i = 0; i < save_count; ++i) {
      parse_save(checked_op(op).schema, saves[i]);
      op->saves.emplace_back(saves[i]);
    }
    checked_op(op).derivative = checked_function(*op->plugin, "derivative", derivative, data);
  });
}

int set_not_differentiable(ls_op* op, const char* reason) {
  return guarded(
      [&] { checked_op(op).not_differentiable_reason = reason != nullptr ? reason : ""; });
}

int set_autocast(ls_op* op, int32_t autocast) {
  return guarded([&] {
    checked_op(op).autocast = checked_enum("autocast class", autocast, Autocast::kPromote);
  });
}

int set_batching(ls_op* op, ls_function rule, void* data) {
  return guarded([&] {
    checked_op(op).batching = checked_function(*op->plugin, "batching rule", rule, data);
  });
}

int add_in_place_form(ls_op* op) {
  return guarded([&] { checked_op(op).in_place = true; });
}

int add_out_form(ls_op* op) {
  return guarded([&] { checked_op(op).out = true; });
}

int override_kernel(ls_plugin* plugin, const char* name, int32_t backend, int32_t strides,
                    const char* type, ls_function kernel, void* data) {
  return guarded([&] {
    check_open(plugin);
    LS_CHECK(name != nullptr, DispatchError, "[plugin] the operator to override is NULL.");
    const Operator& op = dispatcher().find(name);
    LS_CHECK(
        op.kind() == OpKind::kStructured && op.form() == OpForm::kFunctional, DispatchError,
        "[{}] cannot be overridden: expected the functional form of a structured operator, got "
        "a {} one.",
        op.name(), lockstep::name(op.kind()));
    // The wrapper itself copies with this operator.
    LS_CHECK(op.name() != "copy" || strides == LS_STRIDES_ANY, DispatchError,
             "[copy] a kernel that takes its place must take any strides.");
    check_kernel(op.schema(), type);
    plugin->overrides.push_back(
        {op.name(), checked_kernel(*plugin, backend, strides, kernel, data)});
  });
}

int add_graph_pass(ls_plugin* plugin, const char* name, ls_graph_pass pass, void* data) {
  return guarded([&] {
    check_open(plugin);
    LS_CHECK(name != nullptr && *name != '\0', DispatchError,
             "[plugin] a graph pass has no name: expected one for the log.");
    LS_CHECK(pass != nullptr, DispatchError, "[{}] the graph pass is NULL: expected a function.",
             name);
    plugin->passes.push_back({name, pass, data});
  });
}

int set_text(ls_text* result, const char* text, size_t length) {
  return guarded([&] {
    LS_CHECK(result != nullptr && text != nullptr, DispatchError,
             "[plugin] set_text: expected the result of a graph pass and a text, got NULL.");
    result->text.emplace(text, length);
  });
}

}  // namespace

void add_definition_functions(ls_host& host) {
  host.define = &define;
  host.set_rule = &set_rule;
  host.set_dynamic = &set_dynamic;
  host.set_kernel = &set_kernel;
  host.set_derivative = &set_derivative;
  host.set_not_differentiable = &set_not_differentiable;
  host.set_autocast = &set_autocast;
  host.override_kernel = &override_kernel;
  host.set_body = &set_body;
  host.add_in_place_form = &add_in_place_form;
  host.add_out_form = &add_out_form;
  host.set_batching = &set_batching;
  host.add_graph_pass = &add_graph_pass;
  host.set_text = &set_text;
}

}  // namespace lockstep
