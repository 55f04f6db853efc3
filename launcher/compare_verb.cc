#include <fmt/core.h>

#include <memory>

#include "launcher/command_line.h"
#include "launcher/exit_code.h"
#include "launcher/verbs.h"
#include "train/report/run_comparison.h"

namespace lockstep::launcher {

void add_compare(const Verb& app) {
  struct Options {
    std::string a;
    std::string b;
  };
  auto options = std::make_shared<Options>();
  const Verb verb =
      app.verb("compare", "Are two runs the same, bit for bit? Exit status 0: yes, 1: no");
  verb.option("a", options->a, "Run directory, or a metrics.jsonl").required();
  verb.option("b", options->b, "Run directory, or a metrics.jsonl").required();
  verb.runs([options] {
    const train::RunComparison comparison =
        train::compare_runs(train::read_metrics(options->a), train::read_metrics(options->b));
    fmt::print("{}", train::describe(comparison, options->a, options->b));
    if (!comparison.identical()) throw ExitStatus(kFailure);
  });
}

}  // namespace lockstep::launcher
