#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "launcher/exit_code.h"
#include "launcher/verbs.h"
#include "train/run_comparison.h"

namespace lockstep::launcher {

void add_compare(CLI::App& app) {
  struct Options {
    std::string a;
    std::string b;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "compare", "Are two runs the same, bit for bit? Exit status 0: yes, 1: no");
  verb->add_option("a", options->a, "Run directory, or a metrics.jsonl")->required();
  verb->add_option("b", options->b, "Run directory, or a metrics.jsonl")->required();
  verb->callback([options] {
    const train::RunComparison comparison =
        train::compare_runs(train::read_metrics(options->a), train::read_metrics(options->b));
    fmt::print("{}", train::describe(comparison, options->a, options->b));
    if (!comparison.identical()) throw CLI::RuntimeError(kFailure);
  });
}

}  // namespace lockstep::launcher
