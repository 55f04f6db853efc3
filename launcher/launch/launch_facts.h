#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::launcher {

/// Everything that planning a launch reads from this machine, so that tests can supply other facts.
struct LaunchFacts {
  /// Path of Open MPI's mpirun; empty if there is none, with the reason in `no_mpirun`.
  std::string mpirun;
  std::string no_mpirun;
  int open_mpi = 0;            ///< Open MPI's major version
  std::string mpirun_version;  ///< "4.1.4"
  std::string srun;            ///< path of srun; empty if there is none
  std::string program;         ///< path of this program
  std::string host;            ///< this host's name
  std::string folder;          ///< current working folder
  int cores = 1;               ///< cores that this process may run on
  bool root = false;
  uint64_t shared_memory_bytes = 0;              ///< free space in /dev/shm
  std::map<std::string, std::string> variables;  ///< the environment

  /// Contents of a file; nothing if it cannot be read.
  std::function<std::optional<std::string>(const std::string& path)> read;
  /// Path of the program `name` as mpirun resolves it in `folder`; nothing if there is none.
  std::function<std::optional<std::string>(const std::string& name, const std::string& folder)>
      find_program;
  std::function<bool(const std::string& host)> resolves;
  /// A port of loopback at which nobody listens now. Throws Error.
  std::function<uint16_t()> free_port;

  // Facts of this start of the job.
  std::string job_id;
  std::string job_secret;
  int restart = 0;
  int ranks = 0;                      ///< of a restart with fewer ranks; 0: as the options say
  std::vector<std::string> left_out;  ///< hosts that a restart does not use
  bool keep_slow = false;             ///< training is to leave out no rank as too slow
  std::string run_directory;          ///< run directory for commands without --run-dir

  /// Value of an environment variable; empty if it is not set.
  std::string variable(const std::string& name) const;
};

/// Returns the facts of this process and machine. Runs `mpirun --version`. Throws Error if the
/// system provides no random numbers for the job's secret.
LaunchFacts find_launch_facts();

/// Parses major and full version from the output of `mpirun --version`; nothing for other
/// launchers.
std::optional<std::pair<int, std::string>> open_mpi_version(const std::string& text);

}  // namespace lockstep::launcher
