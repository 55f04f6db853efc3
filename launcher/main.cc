#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/environment_flag.h"
#include "core/base/error.h"
#include "core/base/log_text.h"
#include "dist/group/failure.h"
#include "dist/rendezvous/rank_list.h"
#include "launcher/build_facts.h"
#include "launcher/command_line.h"
#include "launcher/exit_code.h"
#include "launcher/ranks.h"
#include "launcher/standard_streams.h"
#include "launcher/variables.h"
#include "launcher/verbs.h"
#include "launcher/version_text.h"

namespace {

/// Whether `lockstep launch` started this process, which shows equal errors of ranks once.
bool is_launched() {
  const char* const job = std::getenv("LOCKSTEP_JOB_ID");
  return job != nullptr && *job != '\0';
}

/// Whether this process is a rank other than 0 of a job that mpirun or srun started.
bool follows() noexcept {
  try {
    return lockstep::launcher::this_rank().rank > 0;
  } catch (const std::exception&) {
    return false;
  }
}

/// Lets rank 0 report an error of the command line or the config first, which all ranks share as a
/// rule: when it ends, mpirun ends the others, so that they need not say the same.
void let_rank_0_report() {
  constexpr std::chrono::seconds kMpirunEndsRanks(2);
  if (!is_launched() && follows()) std::this_thread::sleep_for(kMpirunEndsRanks);
}

void report(const std::exception& error) {
  if (dynamic_cast<const lockstep::ConfigError*>(&error) != nullptr) let_rank_0_report();
  const auto* common = dynamic_cast<const lockstep::dist::CommonMismatchError*>(&error);
  if (common != nullptr && !is_launched()) {
    if (common->rank() != 0) return;
    lockstep::write_log(
        stderr, fmt::format("{}: {}\n",
                            lockstep::dist::rank_list(lockstep::dist::every_rank(common->size())),
                            lockstep::launcher::error_text(error)));
    return;
  }
  lockstep::write_log(stderr, fmt::format("{}\n", lockstep::launcher::error_text(error)));
}

/// Delays the exit of a rank that failed only because another rank did (PeerLostError): a launcher
/// takes the exit status of the first rank that ends, which should be that of the cause. `lockstep
/// launch` itself tells causes from consequences.
void delay_exit_after_peer_loss(const std::exception& error) {
  constexpr std::chrono::seconds kCauseEnds(2);
  if (dynamic_cast<const lockstep::PeerLostError*>(&error) == nullptr) return;
  if (lockstep::environment_flag("LOCKSTEP_SUPERVISED")) return;
  std::fflush(nullptr);
  std::this_thread::sleep_for(kCauseEnds);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace lockstep::launcher;
  open_missing_streams();
  ignore_write_signals();
  CommandLine app("Lockstep trains neural networks: the same config gives the same bits.",
                  "lockstep");
  app.requires_verb();
  app.before_usage_error(let_rank_0_report);
  app.version(LOCKSTEP_VERSION, [] { return version_json(build_facts()); });
  add_train(app, {argv, argv + argc});
  // `launch` takes mpirun's options, which CommandLine cannot parse.
  const bool launches = argc > 1 && std::string_view(argv[1]) == "launch";
  add_launch(
      app, launches ? std::vector<std::string>(argv + 2, argv + argc) : std::vector<std::string>());
  add_init(app);
  add_sample(app);
  add_eval(app);
  add_checkpoint(app);
  add_plan(app);
  add_coordinate_check(app);
  add_graph(app);
  add_bench(app);
  add_stress(app);
  add_ops(app);
  add_cache(app);
  add_data(app);
  add_compare(app);
  add_bisect(app);
  add_plot(app);
  add_report(app);
  add_watch(app);
  add_trace(app);
  add_profile(app);
  add_config(app);
  add_completion(app);
  add_doctor(app);
  try {
    // doctor reports them, help and completion do not need them.
    const std::string_view verb = argc > 1 ? argv[1] : "";
    if (!verb.starts_with('-') && verb != "doctor" && verb != "completion") check_variables();
    const int status = app.parse(launches ? 2 : argc, argv).value_or(kSuccess);
    require_output_written();
    return status;
  } catch (const std::exception& error) {
    if (const auto* failed = dynamic_cast<const std::system_error*>(&error);
        failed != nullptr && std::ferror(stdout) != 0) {
      report(lost_output(failed->code().value()));
      return kFailure;
    }
    report(error);
    delay_exit_after_peer_loss(error);
    return exit_code(error);
  }
}
