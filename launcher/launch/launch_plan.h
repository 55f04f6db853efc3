#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/launch/launch_facts.h"
#include "launcher/launch/launch_options.h"
#include "launcher/shell_command.h"

namespace lockstep::launcher {

/// The commands that start a job.
struct LaunchPlan {
  enum class Way {
    kMpirun,
    kSrun,
    kDirect,  ///< launch itself starts the ranks, all on this host; they connect by TCP
  };
  Way way = Way::kMpirun;
  std::string launcher;  ///< "Open MPI 4.1.4"

  struct Context {
    int ranks = 0;
    std::string working_folder;
    std::vector<std::string> command;  ///< command of each of its ranks
  };
  std::vector<Context> contexts;
  int ranks = 0;
  std::vector<LaunchHost> hosts;  ///< empty: this host

  /// A process that launch itself starts.
  struct Process {
    int rank = -1;  ///< -1: a launcher, which starts the ranks
    std::vector<std::string> command;
    std::map<std::string, std::string> environment;  ///< added for this process alone
    std::string working_folder;                      ///< empty: the current one
  };
  std::vector<Process> ranks_here;                 ///< the ranks of kDirect
  std::vector<std::string> command;                ///< the launcher's; empty for kDirect
  std::map<std::string, std::string> environment;  ///< added for all of them and for the ranks
  /// Added for the launcher alone; mpirun hands on what concerns its ranks.
  std::map<std::string, std::string> launcher_environment;
  std::string session_base;  ///< where mpirun's session folder is made; empty: left to mpirun

  bool trains = false;        ///< whether the ranks run `lockstep train`
  std::string run_directory;  ///< run directory of the training; empty for other programs
  std::vector<std::string> notes;
  LaunchOptions options;
};

/// Environment variables that every rank gets; `lockstep train` and the store read them.
inline constexpr const char* kJobIdVariable = "LOCKSTEP_JOB_ID";
inline constexpr const char* kJobSecretVariable = "LOCKSTEP_JOB_SECRET";
inline constexpr const char* kRestartVariable = "LOCKSTEP_RESTART_COUNT";

/// The processes that launch itself starts: the launcher, or each rank.
std::vector<LaunchPlan::Process> processes_of(const LaunchPlan& plan);

/// Plans a launch; depends only on its arguments. A command whose first word ends in ".txtpb" means
/// `lockstep train` with it, in a fixed run directory so that restarts resume. Throws ConfigError
/// for every obstacle that can be detected before the start: too few slots, host names that do not
/// resolve, malformed hostfile lines, missing programs, running as root.
LaunchPlan plan_launch(LaunchOptions options, const LaunchFacts& facts);

/// Formats the plan for --dry-run, without the job's secret.
std::string to_text(const LaunchPlan& plan);

/// Whether a command means a training run: its first word ends in ".txtpb".
bool is_training(const std::vector<std::string>& command);

}  // namespace lockstep::launcher
