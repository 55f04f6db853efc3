#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "configs/field_list.h"
#include "launcher/bash_completion.h"
#include "launcher/verbs.h"

namespace lockstep::launcher {

void add_completion(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("completion", "Completion of verbs, options and config fields for shells");
  verb->require_subcommand(1);
  verb->add_subcommand("bash", "Print the script: source <(lockstep completion bash)")
      ->callback([&app] { fmt::print("{}", bash_completion(app)); });
  auto prefix = std::make_shared<std::string>();
  CLI::App* paths =
      verb->add_subcommand("paths", "Print the config fields and values that start with a text");
  paths->add_option("prefix", *prefix, "Such as train. or schedule.kind=");
  paths->callback([prefix] {
    for (const std::string& path : config::completions(*prefix)) fmt::print("{}\n", path);
  });
}

}  // namespace lockstep::launcher
