#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/launch/launch_facts.h"
#include "launcher/launch/launch_options.h"

namespace lockstep::launcher {

/// What is to be started, and how.
struct LaunchPlan {
  enum class Way {
    kMpirun,
    kSrun,
    kDirect,  ///< one rank, without a launcher
  };
  Way way = Way::kMpirun;
  std::string launcher;  ///< "Open MPI 4.1.4"

  struct Context {
    int ranks = 0;
    std::string working_folder;
    std::vector<std::string> command;  ///< what each of its ranks runs
  };
  std::vector<Context> contexts;
  int ranks = 0;
  std::vector<LaunchHost> hosts;  ///< none: this one

  std::vector<std::string> command;                ///< what launch itself starts
  std::map<std::string, std::string> environment;  ///< added to our own, for it and the ranks
  std::string working_folder;                      ///< it starts there; empty: here

  bool trains = false;        ///< the ranks run `lockstep train`
  std::string run_directory;  ///< where they write; empty for other programs
  std::vector<std::string> notes;
  LaunchOptions options;
};

/// Names of variables that every rank gets; `lockstep train` and the store read them.
inline constexpr const char* kJobIdVariable = "LOCKSTEP_JOB_ID";
inline constexpr const char* kJobSecretVariable = "LOCKSTEP_JOB_SECRET";
inline constexpr const char* kRestartVariable = "LOCKSTEP_RESTART_COUNT";

/// Depends on its arguments alone. A command whose first word ends in ".txtpb" stands for
/// `lockstep train` with it, in a run directory of its own so that restarts go on. Throws
/// ConfigError for everything that would keep the job from starting and can be known before: too
/// few slots, host names that do not resolve, hostfile lines, programs that are not there, root.
LaunchPlan plan_launch(LaunchOptions options, const LaunchFacts& facts);

/// For --dry-run. The secret is not in it.
std::string to_text(const LaunchPlan& plan);

/// The command line as a shell reads it.
std::string shell_text(const std::vector<std::string>& command);

/// Whether a command stands for a training run.
bool is_training(const std::vector<std::string>& command);

}  // namespace lockstep::launcher
