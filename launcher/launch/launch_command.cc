#include "launcher/launch/launch_command.h"

#include <algorithm>
#include <string_view>

#include "core/base/check.h"

namespace lockstep::launcher {
namespace {

using Command = std::vector<std::string>;

/// MCA parameter that makes Open MPI 4 report which rank failed and when all ranks run.
constexpr const char* kStateParameter = "state_base_verbose";

void add(Command& command, std::initializer_list<std::string> words) {
  command.insert(command.end(), words);
}

std::string host_list(const std::vector<LaunchHost>& hosts) {
  std::vector<std::string> parts;
  for (const LaunchHost& host : hosts) {
    parts.push_back(host.slots == 0 ? host.name : fmt::format("{}:{}", host.name, host.slots));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

/// Translates a policy between Open MPI versions: "socket" in 4 is "package" in 5.
std::string respelled(const std::string& policy, int open_mpi) {
  const size_t end = std::min(policy.find(':'), policy.size());
  const std::string word = policy.substr(0, end);
  if (open_mpi >= 5 && word == "socket") return "package" + policy.substr(end);
  if (open_mpi < 5 && word == "package") return "socket" + policy.substr(end);
  return policy;
}

/// Mapping for --npernode, in the syntax of both Open MPI versions.
std::string per_node(const LaunchOptions& options) {
  return fmt::format("ppr:{}:node", options.ranks_per_node);
}

void add_placement_4(Command& command, const LaunchOptions& options) {
  if (options.oversubscribe) add(command, {"--oversubscribe"});
  if (options.ranks_per_node > 0 && options.map_by.empty()) {
    add(command, {"-N", fmt::format("{}", options.ranks_per_node)});
  }
  if (!options.map_by.empty()) add(command, {"--map-by", respelled(options.map_by, 4)});
}

void add_placement_5(Command& command, const LaunchOptions& options) {
  std::string map = respelled(options.map_by, 5);
  if (map.empty() && options.ranks_per_node > 0) map = per_node(options);
  if (options.oversubscribe) map += ":OVERSUBSCRIBE";
  if (!map.empty()) add(command, {"--map-by", map});
}

void add_output_4(Command& command, const LaunchOptions& options) {
  if (options.report_bindings) add(command, {"--report-bindings"});
  if (!options.exec) {
    add(command, {"--tag-output"});
    const auto is_ours = [](const auto& parameter) { return parameter.first == kStateParameter; };
    if (std::ranges::none_of(options.mca, is_ours)) add(command, {"--mca", kStateParameter, "5"});
    return;
  }
  if (options.tag_output) add(command, {"--tag-output"});
  if (options.timestamp_output) add(command, {"--timestamp-output"});
  if (options.merge_stderr) add(command, {"--merge-stderr-to-stdout"});
  if (!options.output_folder.empty()) {
    const bool copies = options.show_stdout || options.show_stderr;
    add(command, {"--output-filename", options.output_folder + (copies ? "" : ":nocopy")});
  }
}

void add_output_5(Command& command, const LaunchOptions& options) {
  if (options.report_bindings) add(command, {"--display", "bindings"});
  if (!options.exec) {
    add(command, {"--output", "tag"});
    return;
  }
  Command parts;
  if (options.tag_output) parts.emplace_back("tag");
  if (options.timestamp_output) parts.emplace_back("timestamp");
  if (options.merge_stderr) parts.emplace_back("merge-stderr-to-stdout");
  if (!options.output_folder.empty()) {
    const bool copies = options.show_stdout || options.show_stderr;
    parts.push_back(fmt::format("file={}{}", options.output_folder, copies ? "" : ":nocopy"));
  }
  if (!parts.empty()) add(command, {"--output", fmt::format("{}", fmt::join(parts, ","))});
}

/// Variables that every rank of a context gets: the job's, those of the caller's environment that
/// set config fields, and those named by -x.
Command variables_of(const LaunchPlan& plan, const LaunchFacts& facts, size_t context) {
  Command names;
  for (const auto& [name, value] : plan.environment) names.push_back(name);
  for (const auto& [name, value] : facts.variables) {
    if (name.starts_with("LOCKSTEP_") && !plan.environment.contains(name)) names.push_back(name);
  }
  for (const std::string& given : plan.options.contexts[context].variables) {
    std::erase(names, given.substr(0, given.find('=')));
    names.push_back(given);
  }
  return names;
}

}  // namespace

std::vector<std::string> mpirun_command(LaunchPlan& plan, const LaunchFacts& facts) {
  const LaunchOptions& options = plan.options;
  const bool five = facts.open_mpi >= 5;
  Command command = {facts.mpirun};
  if (options.allow_run_as_root) add(command, {"--allow-run-as-root"});
  if (!options.prefix.empty()) add(command, {"--prefix", options.prefix});
  if (options.quiet && !five) add(command, {"--quiet"});  // Open MPI 5 has no such option
  for (const auto& [name, value] : options.mca) add(command, {"--mca", name, value});
  (five ? add_placement_5 : add_placement_4)(command, options);
  // Ranks have several threads, but Open MPI's default binds each rank of a small job to one core.
  add(command,
      {"--bind-to", options.bind_to.empty() ? "none" : respelled(options.bind_to, facts.open_mpi)});
  if (!options.rank_by.empty()) {
    add(command, {"--rank-by", respelled(options.rank_by, facts.open_mpi)});
  }
  (five ? add_output_5 : add_output_4)(command, options);
  if (options.exec && options.timeout_seconds > 0) {
    add(command, {"--timeout", fmt::format("{:.0f}", std::max(1.0, options.timeout_seconds))});
  }
  command.insert(command.end(), options.passed.begin(), options.passed.end());
  for (size_t i = 0; i < plan.contexts.size(); ++i) {
    const LaunchPlan::Context& context = plan.contexts[i];
    const LaunchContext& asked = options.contexts[i];
    if (i > 0) add(command, {":"});
    add(command, {"-np", fmt::format("{}", context.ranks)});
    if (!asked.hosts.empty()) {
      add(command, {"--host", host_list(asked.hosts)});
    } else if (!asked.hostfile.empty() && options.nodes == 0) {
      add(command, {"--hostfile", asked.hostfile});
    } else if (!asked.hostfile.empty()) {
      add(command, {"--host", host_list(plan.hosts)});
    }
    if (!context.working_folder.empty()) add(command, {"--wdir", context.working_folder});
    for (const std::string& variable : variables_of(plan, facts, i)) add(command, {"-x", variable});
    command.insert(command.end(), context.command.begin(), context.command.end());
  }
  return command;
}

std::vector<std::string> srun_command(LaunchPlan& plan, const LaunchFacts& facts) {
  const LaunchOptions& options = plan.options;
  LS_CHECK(plan.contexts.size() == 1, ConfigError,
           "[launch] srun starts one program: expected one, got {} with \":\" between them. Use "
           "Open MPI's mpirun, or `srun --multi-prog` itself.",
           plan.contexts.size());
  const LaunchPlan::Context& context = plan.contexts[0];
  Command command = {facts.srun, fmt::format("--ntasks={}", context.ranks), "--mpi=pmix",
                     "--kill-on-bad-exit=1"};
  if (options.ranks_per_node > 0) {
    command.push_back(fmt::format("--ntasks-per-node={}", options.ranks_per_node));
  }
  if (options.nodes > 0) command.push_back(fmt::format("--nodes={}", options.nodes));
  if (!plan.hosts.empty()) {
    Command names;
    for (const LaunchHost& host : plan.hosts) names.push_back(host.name);
    command.push_back(fmt::format("--nodelist={}", fmt::join(names, ",")));
  }
  if (options.oversubscribe) command.emplace_back("--overcommit");
  const auto cpu_bind = [&]() -> std::string {
    if (options.bind_to.empty() || options.bind_to == "none") return "none";
    if (options.bind_to == "core") return "cores";
    if (options.bind_to == "hwthread") return "threads";
    if (options.bind_to == "socket" || options.bind_to == "package") return "sockets";
    if (options.bind_to == "numa") return "ldoms";
    plan.notes.push_back(
        fmt::format("srun has nothing like --bind-to {}; it is left out", options.bind_to));
    return "none";
  };
  command.push_back((options.report_bindings ? "--cpu-bind=verbose," : "--cpu-bind=") + cpu_bind());
  if (options.map_by == "node") {
    command.emplace_back("--distribution=cyclic");
  } else if (options.map_by == "slot") {
    command.emplace_back("--distribution=block");
  } else if (!options.map_by.empty()) {
    plan.notes.push_back(
        fmt::format("srun has nothing like --map-by {}; it is left out", options.map_by));
  }
  if (!options.rank_by.empty()) plan.notes.emplace_back("srun has no --rank-by; it is left out");
  if (!options.passed.empty()) {
    plan.notes.push_back(
        fmt::format("srun has no {}; it is left out", fmt::join(options.passed, " ")));
  }
  if (!options.mca.empty()) {
    plan.notes.emplace_back("srun has no --mca; set OMPI_MCA_NAME variables instead");
  }
  if (!options.exec || options.tag_output) command.emplace_back("--label");
  if (options.exec && !options.output_folder.empty()) {
    command.push_back(fmt::format("--output={}/1/rank.%t/stdout", options.output_folder));
    command.push_back(fmt::format("--error={}/1/rank.%t/stderr", options.output_folder));
  }
  if (!context.working_folder.empty()) {
    command.push_back(fmt::format("--chdir={}", context.working_folder));
  }
  // srun exports the whole environment (ALL); variables with a value here are added.
  Command given;
  for (const std::string& variable : options.contexts[0].variables) {
    if (variable.find('=') != variable.npos) given.push_back(variable);
  }
  if (!given.empty()) {
    for (const std::string& each : given) {
      LS_CHECK(each.find(',') == each.npos, ConfigError,
               "[launch] srun cannot take {:?}: expected no comma in a value after -x. Export the "
               "variable and write -x {}.",
               each, each.substr(0, each.find('=')));
    }
    command.push_back(fmt::format("--export=ALL,{}", fmt::join(given, ",")));
  }
  command.insert(command.end(), context.command.begin(), context.command.end());
  return command;
}

}  // namespace lockstep::launcher
