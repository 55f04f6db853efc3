#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/launcher/program.h"

namespace lockstep::launcher {

/// Programs of several ranks, started by mpirun.
class RanksTest : public Program {
 protected:
  void SetUp() override {
    if (const std::string why = no_mpirun(); !why.empty()) GTEST_SKIP() << why;
  }

  /// Runs the shell line `command` on every rank; $0 is the program.
  Result on_ranks(int ranks, const std::string& command, const std::string& variables = "") const {
    return shell(mpirun(variables) +
                 fmt::format(" -np {} sh -c '{}' '{}/lockstep'", ranks, command, LOCKSTEP_BIN_DIR));
  }
  static std::string mpirun(const std::string& variables = "") {
    return fmt::format(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 {} timeout 60 mpirun "
        "--oversubscribe --bind-to none",
        variables);
  }
  /// Trains run.txtpb in `folder` on all ranks, each after the shell line `first`.
  Result train(int ranks, const std::string& folder, const std::string& more = "",
               const std::string& first = "") const {
    return on_ranks(
        ranks, fmt::format("{} exec \"$0\" train run.txtpb --run-dir {} {}", first, folder, more));
  }
  /// A shell line that runs `what` beside rank `rank` (process $$) once the shell condition `when`
  /// holds; not if the rank ends before.
  static std::string beside_rank(int rank, const std::string& when, const std::string& what) {
    return fmt::format(
        "if [ $OMPI_COMM_WORLD_RANK = {} ]; then (until {}; do kill -0 $$ || exit; sleep 0.02; "
        "done; {}) & fi;",
        rank, when, what);
  }
  /// Runs `what` beside rank 1 once the run in folder "run" has made a step.
  static std::string rank_1(const std::string& what) {
    return beside_rank(1, "[ -s run/metrics.jsonl ]", what);
  }
};

}  // namespace lockstep::launcher
