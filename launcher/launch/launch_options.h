#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::launcher {

struct LaunchHost {
  std::string name;  ///< may be user@name
  int slots = 0;     ///< ranks it takes; 0 where that was not said

  friend bool operator==(const LaunchHost&, const LaunchHost&) = default;
};

/// One program of a job and its ranks. Jobs of several are written with ":" between them.
struct LaunchContext {
  int ranks = 0;  ///< 0: not said
  std::vector<LaunchHost> hosts;
  std::string hostfile;
  std::string working_folder;
  std::vector<std::string> variables;  ///< "NAME" or "NAME=value", for the ranks
  std::vector<std::string> command;    ///< program or RUN.txtpb, and what follows it
};

/// What stands after `lockstep launch`. Empty texts and 0: not said.
struct LaunchOptions {
  std::vector<LaunchContext> contexts;
  int ranks_per_node = 0;
  int nodes = 0;
  std::string map_by;
  std::string bind_to;
  std::string rank_by;
  std::vector<std::pair<std::string, std::string>> mca;
  std::string prefix;
  std::vector<std::string> passed;  ///< options of mpirun that go to it as they are
  bool oversubscribe = false;
  bool allow_run_as_root = false;
  bool report_bindings = false;

  std::string output_folder;
  bool tag_output = false;
  bool timestamp_output = false;
  bool merge_stderr = false;
  bool show_stdout = true;  ///< on the terminal
  bool show_stderr = true;

  double timeout_seconds = 0;
  std::optional<int> max_restarts;
  double backoff_seconds = 1;
  double grace_seconds = 60;

  bool dry_run = false;
  bool exec = false;
  bool help = false;
};

/// mpirun's spellings, torchrun's as aliases, and our own. Long names take one dash or two, "-" and
/// "_" are alike, and "--name=value" is "--name value". What follows a program belongs to it, until
/// ":" begins the next one. Throws ConfigError, with the name that was most likely meant.
LaunchOptions parse_launch_options(std::span<const std::string> arguments);

/// One option, for help and completion.
struct LaunchOptionHelp {
  std::string names;  ///< "-n,--np"
  std::string value;  ///< "N"; empty for a flag
  std::string text;
};
std::vector<LaunchOptionHelp> launch_option_help();

/// "a:4,b" as after --host. A name given again adds to its slots. Throws ConfigError.
std::vector<LaunchHost> parse_hosts(const std::string& text);

/// Throws ConfigError unless the text is a policy that mpirun knows for `option` ("map-by",
/// "rank-by" or "bind-to").
void check_policy(const std::string& option, const std::string& text);

}  // namespace lockstep::launcher
