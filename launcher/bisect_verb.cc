#include <fmt/core.h>

#include <memory>

#include "launcher/command_line.h"
#include "launcher/exit_code.h"
#include "launcher/load_option.h"
#include "launcher/verbs.h"
#include "train/bisect/bisect.h"

namespace lockstep::launcher {

void add_bisect(const Verb& app) {
  struct Options {
    std::string a;
    std::string b;
    std::vector<std::string> plugins;
    train::BisectOptions search;
  };
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb(
      "bisect",
      "Which operator made two runs part? Replays both from their newest common checkpoint. Exit "
      "status 0: they are the same, 1: they part");
  verb.option("a", options->a, "Run directory").required();
  verb.option("b", options->b, "Run directory").required();
  verb.flag("--replay-equal", options->search.replay_equal,
            "Replay also runs whose losses and weights are the same: a wrong number may leave no "
            "trace in them");
  verb.flag("--other-programs", options->search.other_programs,
            "Replay also runs that another build or processor computed, and tell which steps "
            "repeat");
  verb.option("--tolerance", options->search.tolerance,
              "Numbers may differ by this much of the largest one that an operator writes, as "
              "between devices (default 0: all bits count)")
      .not_negative();
  add_load_option(verb, options->plugins);
  verb.runs([options] {
    const std::vector<Plugin> plugins = load_plugins(options->plugins);
    const train::RecordedRun a = train::read_run(options->a);
    const train::RecordedRun b = train::read_run(options->b);
    const train::Bisection found = train::bisect(a, b, options->search);
    fmt::print("{}", train::describe(found, a, b));
    if (!found.same()) throw ExitStatus(kFailure);
  });
}

}  // namespace lockstep::launcher
