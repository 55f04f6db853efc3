#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace lockstep::launcher {

/// What a launch finds on this machine. Planning asks nothing else, so that tests can say what
/// there is.
struct LaunchFacts {
  /// The path of Open MPI's mpirun; empty where there is none, with the reason in `no_mpirun`.
  std::string mpirun;
  std::string no_mpirun;
  int open_mpi = 0;            ///< its major version
  std::string mpirun_version;  ///< "4.1.4"
  std::string srun;            ///< empty where there is none
  std::string program;         ///< this program
  std::string host;            ///< this host's name
  std::string folder;          ///< the current one
  int cores = 1;               ///< that this process may run on
  bool root = false;
  std::map<std::string, std::string> variables;  ///< the environment

  /// What a file holds; nothing if it cannot be read.
  std::function<std::optional<std::string>(const std::string& path)> read;
  /// The file that a program's name stands for in a folder, as mpirun finds it there.
  std::function<std::optional<std::string>(const std::string& name, const std::string& folder)>
      find_program;
  std::function<bool(const std::string& host)> resolves;

  // Of this start.
  std::string job_id;
  std::string job_secret;
  int restart = 0;
  std::string run_directory;  ///< for a run without --run-dir

  /// A variable's value, empty if it is not set.
  std::string variable(const std::string& name) const;
};

/// Those of this process. Runs `mpirun --version`. Throws Error when the system gives no random
/// numbers for the job's secret.
LaunchFacts find_launch_facts();

/// Major version and whole version in what `mpirun --version` prints; nothing for other launchers.
std::optional<std::pair<int, std::string>> open_mpi_version(const std::string& text);

}  // namespace lockstep::launcher
