#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::launcher {

struct LaunchHost {
  std::string name;  ///< may be user@name
  int slots = 0;     ///< number of ranks it takes; 0: not specified

  friend bool operator==(const LaunchHost&, const LaunchHost&) = default;
};

/// One program of a job and its ranks; ":" separates several programs on the command line.
struct LaunchContext {
  int ranks = 0;  ///< 0: not specified
  std::vector<LaunchHost> hosts;
  std::string hostfile;
  std::string working_folder;
  std::vector<std::string> variables;  ///< "NAME" or "NAME=value", for the ranks
  std::vector<std::string> command;    ///< program or RUN.txtpb, and its arguments
};

/// The options after `lockstep launch`. Empty texts and 0 mean not specified.
struct LaunchOptions {
  std::vector<LaunchContext> contexts = {};
  int ranks_per_node = 0;
  int nodes = 0;
  std::string map_by = {};
  std::string bind_to = {};
  std::string rank_by = {};
  std::vector<std::pair<std::string, std::string>> mca = {};
  std::string transport = {};  ///< what connects the ranks: "mpi" or "tcp"
  std::string prefix = {};
  std::vector<std::string> passed = {};  ///< options passed to mpirun unchanged
  bool oversubscribe = false;
  bool allow_run_as_root = false;
  bool report_bindings = false;
  bool quiet = false;    ///< no notes of launch or mpirun
  bool verbose = false;  ///< the plan is printed before it is carried out

  std::string output_folder = {};
  bool tag_output = false;
  bool timestamp_output = false;
  bool merge_stderr = false;
  bool show_stdout = true;  ///< on the terminal
  bool show_stderr = true;

  double timeout_seconds = 0;
  std::optional<int> max_restarts = {};
  double restart_delay_seconds = 1;
  int min_ranks = 0;     ///< of a restart; 0: as many as at first
  bool elastic = false;  ///< training goes on without ranks that are lost
  int max_ranks = 0;     ///< that such training may have; 0: as many as at first, or by its config
  int fewest_left = 0;   ///< ranks that do so; 0: none do. Also where a run's config says so
  double grace_seconds = 60;

  bool dry_run = false;
  bool exec = false;
  bool help = false;
};

/// Parses mpirun's options, torchrun's as aliases, and Lockstep's own. Long names take one dash or
/// two, "-" and "_" are equivalent, "--name=value" is "--name value", and "-n4" is "-n 4".
/// Arguments after a program belong to it, up to a ":" before the next one. Throws ConfigError,
/// with the nearest name for an unknown option.
LaunchOptions parse_launch_options(std::span<const std::string> arguments);

/// One option, for help and completion.
struct LaunchOptionHelp {
  std::string names;  ///< "-n,--np"
  std::string value;  ///< "N"; empty for a flag
  std::string text;
};
std::vector<LaunchOptionHelp> launch_option_help();

/// Parses "a:4,b", the value of --host. A repeated name adds slots. Throws ConfigError.
std::vector<LaunchHost> parse_hosts(const std::string& text);

/// Throws ConfigError unless the text is a policy that mpirun knows for `option` ("map-by",
/// "rank-by" or "bind-to").
void check_policy(const std::string& option, const std::string& text);

}  // namespace lockstep::launcher
