#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "core/dispatcher.h"
#include "launcher/verbs.h"

namespace lockstep::launcher {

namespace {

std::string derivative_text(const Operator& op) {
  if (op.kind() == OpKind::kComposite) return "through its body";
  const Derivative& derivative = op.derivative();
  return derivative.exists() ? "yes" : "none: " + derivative.reason_for_none;
}

void print_operator(const Operator& op) {
  fmt::print("{}\n  {}\n\n", op.schema().to_string(), op.doc());
  fmt::print("  kind           {}\n", name(op.kind()));
  fmt::print("  derivative     {}\n", derivative_text(op));
  fmt::print("  autocast       {}\n", name(op.autocast()));
  fmt::print("  defined at     {}:{}\n\n", op.site().file, op.site().line);
  fmt::print("{}", dispatcher().dump(op));
}

void print_list() {
  for (const Operator* op : dispatcher().operators()) {
    fmt::print("{:<36} {:<11} {}\n", op->name(), name(op->kind()), op->doc());
  }
}

}  // namespace

void add_ops(CLI::App& app) {
  auto wanted = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("ops", "List the operators, or show one's table");
  verb->add_option("name", *wanted, "Operator, such as add.Tensor");
  verb->callback([wanted] {
    if (wanted->empty()) {
      print_list();
    } else {
      print_operator(dispatcher().find(*wanted));
    }
  });
}

}  // namespace lockstep::launcher
