#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "launcher/command_line.h"
#include "launcher/exit_code.h"
#include "launcher/verbs.h"
#include "train/report/run_comparison.h"
#include "train/run/final_model.h"

namespace lockstep::launcher {

namespace {

/// Compares the weights of two run directories; of a metrics file there are none.
train::WeightsComparison weights_of(const std::string& a, const std::string& b) {
  if (!std::filesystem::is_directory(a) || !std::filesystem::is_directory(b)) return {};
  return train::compare_weights(train::RunDirectory::open(a), train::RunDirectory::open(b));
}

}  // namespace

void add_compare(const Verb& app) {
  struct Options {
    std::string a;
    std::string b;
  };
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb(
      "compare",
      "Are losses and weights of two runs the same, bit for bit? Exit status 0: yes, 1: no");
  verb.option("a", options->a, "Run directory, or a metrics.jsonl").required();
  verb.option("b", options->b, "Run directory, or a metrics.jsonl").required();
  verb.runs([options] {
    const train::RunComparison comparison =
        train::compare_runs(train::read_metrics(options->a), train::read_metrics(options->b));
    fmt::print("{}", train::describe(comparison, options->a, options->b));
    const train::WeightsComparison weights = weights_of(options->a, options->b);
    fmt::print("{}", weights.text);
    if (!comparison.identical() || !weights.identical) throw ExitStatus(kFailure);
  });
}

}  // namespace lockstep::launcher
