#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/dispatch/dispatcher.h"
#include "launcher/command_line.h"
#include "launcher/load_option.h"
#include "launcher/verbs.h"

namespace lockstep::launcher {

namespace {

std::string derivative_text(const Operator& op) {
  if (op.kind() == OpKind::kComposite) return "through its body";
  const Derivative& derivative = op.derivative();
  return derivative.exists() ? "yes" : "none: " + derivative.not_differentiable_reason;
}

/// Whether autograd records calls. A composite operator is differentiated through its body unless
/// its declaration gives a reason why not; out= forms are not recorded.
bool is_differentiable(const Operator& op) {
  if (op.form() == OpForm::kOut) return false;
  const Derivative& derivative = op.derivative();
  return derivative.exists() ||
         (op.kind() == OpKind::kComposite && derivative.not_differentiable_reason.empty());
}

/// Whether a call synchronizes with an asynchronous device, because its result or the result's size
/// depends on values.
bool synchronises(const Operator& op) {
  return op.kind() == OpKind::kDynamic || op.kind() == OpKind::kHostValue;
}

/// Backends with a kernel for the operator itself, not just the key's fallback. All forms of an
/// operator share its kernels.
std::vector<std::string_view> kernel_names(const Operator& op) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kKeyCount; ++i) {
    const Key key = static_cast<Key>(i);
    if (!KeySet::backends().has(key)) continue;
    const Reason reason = op.reason(key);
    if (reason == Reason::kKernel || reason == Reason::kBoxedKernel || reason == Reason::kQueued) {
      names.push_back(name(key));
    }
  }
  return names;
}

nlohmann::ordered_json as_json(const Operator& op) {
  return {{"name", op.name()},
          {"schema", op.schema().to_string()},
          {"kind", name(op.kind())},
          {"kernels", kernel_names(op)},
          {"autocast", name(op.autocast())},
          {"tags", op.tags()},
          {"synchronises", synchronises(op)},
          {"differentiable", is_differentiable(op)}};
}

void print_json(const std::vector<const Operator*>& operators) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Operator* op : operators) list.push_back(as_json(*op));
  fmt::print("{}\n", list.dump(2));
}

void print_operator(const Operator& op) {
  fmt::print("{}\n  {}\n\n", op.schema().to_string(), op.doc());
  fmt::print("  kind           {}\n", name(op.kind()));
  fmt::print("  synchronises   {}\n",
             synchronises(op) ? "yes: waits for an asynchronous device" : "no");
  fmt::print("  derivative     {}\n", derivative_text(op));
  fmt::print("  autocast       {}\n", name(op.autocast()));
  fmt::print("  batching       {}\n", op.batching() != nullptr ? "its own rule" : "none");
  fmt::print("  defined at     {}\n\n", to_string(op.site()));
  fmt::print("{}", dispatcher().dump(op));
}

void print_list(const std::vector<const Operator*>& operators) {
  for (const Operator* op : operators) {
    fmt::print("{:<36} {:<11} {}\n", op->name(), name(op->kind()), op->doc());
  }
}

/// Finds an operator; throws UsageError if there is none of this name.
const Operator& operator_named(const std::string& name) {
  try {
    return dispatcher().find(name);
  } catch (const DispatchError& error) {
    throw UsageError(fmt::format("name: {}", error.what()));
  }
}

}  // namespace

void add_ops(const Verb& app) {
  struct Options {
    std::string name;
    std::vector<std::string> plugins;
    bool json = false;
    bool synchronising = false;
  };
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("ops", "List the operators, or show one's table");
  verb.option("name", options->name, "Operator, such as add.Tensor");
  add_load_option(verb, options->plugins);
  verb.flag("--synchronising", options->synchronising,
            "List those alone that wait for an asynchronous device");
  verb.flag("--json", options->json, "A list of one JSON object an operator");
  verb.runs([options] {
    const std::vector<Plugin> plugins = load_plugins(options->plugins);
    const Operator* one = options->name.empty() ? nullptr : &operator_named(options->name);
    std::vector<const Operator*> operators =
        one != nullptr ? std::vector{one} : dispatcher().operators();
    if (options->synchronising) {
      std::erase_if(operators, [](const Operator* op) { return !synchronises(*op); });
    }
    if (options->json) {
      print_json(operators);
    } else if (one != nullptr) {
      print_operator(*one);
    } else {
      print_list(operators);
    }
  });
}

}  // namespace lockstep::launcher
