#include "launcher/launch/launch_plan.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/base/check.h"
#include "launcher/launch/hostfile.h"
#include "launcher/launch/launch_command.h"
#include "launcher/launch/local_ranks.h"

namespace lockstep::launcher {
namespace {

bool is_this_host(const std::string& name, const LaunchFacts& facts) {
  const auto first_label = [](const std::string& host) { return host.substr(0, host.find('.')); };
  return name == "localhost" || name == "127.0.0.1" || name == "::1" || name == facts.host ||
         (!facts.host.empty() && name == first_label(facts.host));
}

std::vector<LaunchHost> hosts_of(const LaunchContext& context, const LaunchFacts& facts) {
  if (!context.hosts.empty()) return context.hosts;
  if (context.hostfile.empty()) return {};
  const std::optional<std::string> text = facts.read(context.hostfile);
  LS_CHECK(text, ConfigError,
           "[launch] the hostfile {} cannot be read: expected a file with lines NAME slots=N.",
           context.hostfile);
  return parse_hostfile(*text, context.hostfile);
}

void check_names(const std::vector<LaunchHost>& hosts, LaunchPlan& plan, const LaunchFacts& facts) {
  std::vector<std::string> unknown;
  for (const LaunchHost& host : hosts) {
    const std::string name = host.name.substr(host.name.find('@') + 1);
    if (!is_this_host(name, facts) && !facts.resolves(name)) unknown.push_back(host.name);
  }
  if (unknown.empty()) return;
  const std::string problem =
      fmt::format("{} {} not resolve to an address", fmt::join(unknown, ", "),
                  unknown.size() == 1 ? "does" : "do");
  // A custom plm_rsh_agent may know names that the resolver does not.
  const bool own_agent = std::ranges::any_of(
      plan.options.mca, [](const auto& parameter) { return parameter.first == "plm_rsh_agent"; });
  LS_CHECK(own_agent, ConfigError,
           "[launch] {}: expected names that `getent hosts` knows. Correct --host or the hostfile.",
           problem);
  plan.notes.push_back(problem);
}

/// Total number of slots; 0 if that of any host is unknown.
int slots_of(const std::vector<LaunchHost>& hosts, const LaunchFacts& facts) {
  if (hosts.empty()) return facts.cores;
  int total = 0;
  for (const LaunchHost& host : hosts) {
    const int slots = host.slots > 0                   ? host.slots
                      : is_this_host(host.name, facts) ? facts.cores
                                                       : 0;
    if (slots == 0) return 0;
    total += slots;
  }
  return total;
}

std::string describe(const std::vector<LaunchHost>& hosts, const LaunchFacts& facts) {
  if (hosts.empty()) return fmt::format("{} on this host, one a core", facts.cores);
  std::vector<std::string> parts;
  for (const LaunchHost& host : hosts) {
    parts.push_back(fmt::format("{} on {}", host.slots > 0 ? host.slots : facts.cores, host.name));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

int ranks_of(const LaunchContext& context, const std::vector<LaunchHost>& hosts,
             const LaunchPlan& plan, const LaunchFacts& facts) {
  if (facts.ranks > 0) return facts.ranks;
  if (context.ranks > 0) return context.ranks;
  const int nodes = std::max<int>(
      1, plan.options.nodes > 0 ? plan.options.nodes : static_cast<int>(hosts.size()));
  if (plan.options.ranks_per_node > 0) return plan.options.ranks_per_node * nodes;
  const int slots = slots_of(hosts, facts);
  LS_CHECK(slots > 0, ConfigError,
           "[launch] the number of ranks is not known: expected -np, or slots for every host "
           "(NAME:SLOTS, or slots=N in the hostfile).");
  return slots;
}

void check_slots(int ranks, const std::vector<LaunchHost>& hosts, const LaunchPlan& plan,
                 const LaunchFacts& facts) {
  const int slots = slots_of(hosts, facts);
  const bool hardware_threads =
      std::ranges::find(plan.options.passed, "--use-hwthread-cpus") != plan.options.passed.end();
  std::string map = plan.options.map_by;
  std::ranges::transform(map, map.begin(), [](unsigned char c) { return std::tolower(c); });
  if (slots == 0 || hardware_threads || plan.options.oversubscribe ||
      map.find("oversubscribe") != map.npos) {
    return;
  }
  LS_CHECK(
      ranks <= slots, ConfigError,
      "[launch] too few slots: expected at most {} ranks ({}), got {}. Give --oversubscribe to "
      "share cores, {}, or ask for fewer ranks.",
      slots, describe(hosts, facts), ranks,
      hosts.empty() ? "name more hosts with --host"
                    : "more slots (--host NAME:SLOTS, slots=N in the hostfile)");
}

/// Adds a program's hosts to the plan; programs share hosts that both name.
void add_hosts(const std::vector<LaunchHost>& hosts, LaunchPlan& plan) {
  for (const LaunchHost& host : hosts) {
    const auto known = std::ranges::find(plan.hosts, host.name, &LaunchHost::name);
    if (known == plan.hosts.end()) {
      plan.hosts.push_back(host);
    } else {
      known->slots = std::max(known->slots, host.slots);
    }
  }
}

void use_nodes(std::vector<LaunchHost>& hosts, LaunchPlan& plan) {
  const int wanted = plan.options.nodes;
  if (wanted == 0) return;
  const int known = std::max<int>(1, static_cast<int>(hosts.size()));
  LS_CHECK(wanted <= known || plan.way == LaunchPlan::Way::kSrun, ConfigError,
           "[launch] --nnodes {} but {} known: expected as many names after --host, or in the "
           "hostfile.",
           wanted, known == 1 ? "one host is" : fmt::format("{} hosts are", known));
  if (static_cast<int>(hosts.size()) > wanted) hosts.resize(static_cast<size_t>(wanted));
}

bool has_option(const std::vector<std::string>& command, std::string_view option) {
  return std::ranges::any_of(command, [&](const std::string& word) {
    return word == option || word.starts_with(std::string(option) + "=");
  });
}

std::string value_of(const std::vector<std::string>& command, std::string_view option) {
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i].starts_with(std::string(option) + "=")) {
      return command[i].substr(option.size() + 1);
    }
    if (command[i] == option && i + 1 < command.size()) return command[i + 1];
  }
  return "";
}

/// Returns `path` so that ranks that start in `folder` find it.
std::string path_from(const std::string& path, const std::string& folder,
                      const LaunchFacts& facts) {
  return folder.empty() || path.starts_with("/") ? path : facts.folder + "/" + path;
}

/// The command with config files and --run-dir as ranks find them, which start in the working
/// folder: both are named from where launch is started.
std::vector<std::string> training_command(const LaunchContext& asked, LaunchPlan& plan,
                                          const LaunchFacts& facts) {
  constexpr std::string_view kRunDirectory = "--run-dir";
  const auto from_there = [&](const std::string& path) {
    return path_from(path, asked.working_folder, facts);
  };
  std::vector<std::string> full = {facts.program, "train"};
  bool files = true;
  for (const std::string& word : asked.command) {
    files = files && word.ends_with(".txtpb");
    const bool is_directory = full.back() == kRunDirectory;
    if (word.starts_with(fmt::format("{}=", kRunDirectory))) {
      full.push_back(
          fmt::format("{}={}", kRunDirectory, from_there(word.substr(kRunDirectory.size() + 1))));
    } else {
      full.push_back(files || is_directory ? from_there(word) : word);
    }
  }
  if (!has_option(full, kRunDirectory)) {
    full.insert(full.end(), {std::string(kRunDirectory), from_there(facts.run_directory)});
  }
  if (plan.options.elastic) {
    full.emplace_back("--set");
    full.push_back(fmt::format("parallel.elastic.min_ranks={}", plan.options.fewest_left));
    if (plan.options.max_ranks > 0) {
      full.emplace_back("--set");
      full.push_back(fmt::format("parallel.elastic.max_ranks={}", plan.options.max_ranks));
    }
  }
  // A restart must resume from what the first start wrote.
  if (facts.restart > 0) std::erase(full, "--fresh");
  if (!plan.trains) {
    plan.trains = true;
    plan.run_directory = value_of(full, kRunDirectory);
  }
  return full;
}

/// Checks that ranks on this host can find the folder and the program.
void check_program(const LaunchPlan::Context& context, const std::vector<LaunchHost>& hosts,
                   const LaunchFacts& facts) {
  const bool here = hosts.empty() || std::ranges::any_of(hosts, [&](const LaunchHost& host) {
                      return is_this_host(host.name, facts);
                    });
  if (!here) return;
  LS_CHECK(facts.find_program(context.command[0], context.working_folder), ConfigError,
           "[launch] no program {:?}: expected RUN.txtpb, or a file that may be run{}, in PATH{}. "
           "Options of launch stand before it.",
           context.command[0],
           context.working_folder.empty() ? "" : " from " + context.working_folder,
           context.command[0].find('/') == std::string::npos ? "" : " or by this path");
}

void check_root(const LaunchPlan& plan, const LaunchFacts& facts) {
  if (!facts.root || plan.options.allow_run_as_root) return;
  LS_CHECK(facts.variable("OMPI_ALLOW_RUN_AS_ROOT") == "1" &&
               facts.variable("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") == "1",
           ConfigError,
           "[launch] mpirun does not run as root unless told to: got user root. Say "
           "--allow-run-as-root (or set OMPI_ALLOW_RUN_AS_ROOT=1 and "
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1) where that is meant, as in a container.");
}

void check_fewest(const LaunchPlan& plan) {
  const LaunchOptions& options = plan.options;
  if (options.min_ranks == 0) return;
  LS_CHECK(options.min_ranks <= plan.ranks, ConfigError,
           "[launch] --min-ranks {}: expected at most the number of ranks, {}.", options.min_ranks,
           plan.ranks);
  LS_CHECK(options.max_restarts.value_or(0) > 0 || options.elastic, ConfigError,
           "[launch] --min-ranks {} is of restarts, and there are none: expected --max-restarts, "
           "too, or --elastic.",
           options.min_ranks);
}

void check_elastic(const LaunchPlan& plan) {
  const LaunchOptions& options = plan.options;
  LS_CHECK(options.max_ranks == 0 || options.elastic, ConfigError,
           "[launch] --max-ranks {} is of ranks that join others: expected --elastic, too.",
           options.max_ranks);
  LS_CHECK(options.max_ranks == 0 || options.max_ranks >= plan.ranks, ConfigError,
           "[launch] --max-ranks {}: expected at least the number of ranks, {}.", options.max_ranks,
           plan.ranks);
  if (!options.elastic) return;
  LS_CHECK(plan.trains, ConfigError,
           "[launch] --elastic is of training, which goes on without ranks that are lost: expected "
           "RUN.txtpb, got {}.",
           plan.contexts.front().command.front());
  LS_CHECK(plan.way == LaunchPlan::Way::kDirect, ConfigError,
           "[launch] --elastic: a launcher of MPI programs ends all ranks when one is lost: "
           "expected --transport tcp, and this host alone.");
}

void check_nested(const LaunchFacts& facts) {
  const std::string rank = facts.variable("OMPI_COMM_WORLD_RANK");
  LS_CHECK(rank.empty(), ConfigError,
           "[launch] this is already rank {} of a job (OMPI_COMM_WORLD_RANK): expected launch "
           "outside of mpirun. Start `lockstep train` there.",
           rank);
}

/// What connects the ranks: "mpi", "tcp" or "", not told.
std::string transport_of(const LaunchPlan& plan, const LaunchFacts& facts) {
  return plan.options.transport.empty() ? facts.variable("LOCKSTEP_TRANSPORT")
                                        : plan.options.transport;
}

LaunchPlan::Way way_of(LaunchPlan& plan, const LaunchFacts& facts) {
  const bool in_slurm = !facts.variable("SLURM_JOB_ID").empty() && !facts.srun.empty();
  if (in_slurm) return LaunchPlan::Way::kSrun;
  const bool here = std::ranges::all_of(
      plan.hosts, [&](const LaunchHost& host) { return is_this_host(host.name, facts); });
  const std::string transport = transport_of(plan, facts);
  if (here && transport == "tcp") return LaunchPlan::Way::kDirect;
  if (!facts.mpirun.empty()) return LaunchPlan::Way::kMpirun;
  LS_CHECK(here && transport.empty(), ConfigError,
           "[launch] {} need a launcher: expected Open MPI's mpirun or srun in a Slurm job, got "
           "neither ({}). Install openmpi-bin; ranks on this host that TCP connects need none.",
           here ? "ranks that MPI connects" : "ranks on other hosts", facts.no_mpirun);
  plan.notes.push_back(fmt::format("{}: ranks are started without, on this host", facts.no_mpirun));
  return LaunchPlan::Way::kDirect;
}

void set_environment(LaunchPlan& plan, const LaunchFacts& facts) {
  plan.environment[kJobIdVariable] = facts.job_id;
  plan.environment[kJobSecretVariable] = facts.job_secret;
  plan.environment[kRestartVariable] = fmt::format("{}", facts.restart);
  plan.environment["TORCHELASTIC_RESTART_COUNT"] = fmt::format("{}", facts.restart);
  plan.environment["TORCHELASTIC_MAX_RESTARTS"] =
      fmt::format("{}", plan.options.max_restarts.value_or(0));
  plan.environment["TORCHELASTIC_RUN_ID"] = facts.job_id;
  if (facts.keep_slow) plan.environment["LOCKSTEP_KEEP_SLOW"] = "1";
  if (!plan.options.transport.empty()) {
    plan.environment["LOCKSTEP_TRANSPORT"] = plan.options.transport;
  }
}

bool is_set(const LaunchPlan& plan, const LaunchFacts& facts, const std::string& parameter) {
  const auto& given = plan.options.mca;
  return !facts.variable("OMPI_MCA_" + parameter).empty() ||
         std::ranges::find(given, parameter, &std::pair<std::string, std::string>::first) !=
             given.end();
}

/// Settings of mpirun that keep the job private, unless the user has set them.
void set_launcher_environment(LaunchPlan& plan, const LaunchFacts& facts) {
  const auto is_here = [&](const LaunchHost& host) { return is_this_host(host.name, facts); };
  // Ranks of one host reach each other through shared memory, of which Open MPI takes 4 MiB a rank,
  // without a port that other hosts can see.
  const uint64_t needed = (uint64_t{8} << 20) * static_cast<uint64_t>(plan.ranks);
  const bool has_memory = facts.shared_memory_bytes >= needed;
  if (std::ranges::all_of(plan.hosts, is_here) && has_memory && !is_set(plan, facts, "btl")) {
    plan.launcher_environment["OMPI_MCA_btl"] = facts.open_mpi >= 5 ? "self,sm" : "self,vader";
  }
  for (const char* given :
       {"orte_tmpdir_base", "orte_local_tmpdir_base", "orte_remote_tmpdir_base"}) {
    if (is_set(plan, facts, given)) return;
  }
  for (const char* name : {"TMPDIR", "TEMP", "TMP"}) {  // in mpirun's order
    if (plan.session_base.empty()) plan.session_base = facts.variable(name);
  }
  if (plan.session_base.empty()) plan.session_base = "/tmp";
}

}  // namespace

bool is_training(const std::vector<std::string>& command) {
  return !command.empty() && command[0].ends_with(".txtpb");
}

std::vector<LaunchPlan::Process> processes_of(const LaunchPlan& plan) {
  if (plan.way == LaunchPlan::Way::kDirect) return plan.ranks_here;
  return {{-1, plan.command, plan.launcher_environment, ""}};
}

LaunchPlan plan_launch(LaunchOptions options, const LaunchFacts& facts) {
  check_nested(facts);
  LaunchPlan plan;
  if (options.ranks_per_node < 0) options.ranks_per_node = facts.cores;
  plan.options = std::move(options);
  const bool in_slurm = !facts.variable("SLURM_JOB_ID").empty() && !facts.srun.empty();
  if (in_slurm) plan.way = LaunchPlan::Way::kSrun;
  for (LaunchContext& asked : plan.options.contexts) {
    std::vector<LaunchHost> hosts = hosts_of(asked, facts);
    std::erase_if(hosts, [&](const LaunchHost& host) {
      return std::ranges::find(facts.left_out, host.name) != facts.left_out.end();
    });
    use_nodes(hosts, plan);
    if (!asked.hosts.empty() || !facts.left_out.empty()) asked.hosts = hosts;
    check_names(hosts, plan, facts);
    LaunchPlan::Context context;
    context.working_folder = asked.working_folder;
    context.command =
        is_training(asked.command) ? training_command(asked, plan, facts) : asked.command;
    check_program(context, hosts, facts);
    if (plan.way == LaunchPlan::Way::kSrun && asked.ranks == 0 &&
        plan.options.ranks_per_node == 0) {
      const std::string tasks = facts.variable("SLURM_NTASKS");
      context.ranks = tasks.empty() ? 1 : std::max(1, std::atoi(tasks.c_str()));
    } else {
      context.ranks = ranks_of(asked, hosts, plan, facts);
    }
    plan.ranks += context.ranks;
    add_hosts(hosts, plan);
    plan.contexts.push_back(std::move(context));
  }
  plan.way = way_of(plan, facts);
  check_fewest(plan);
  check_elastic(plan);
  set_environment(plan, facts);
  switch (plan.way) {
    case LaunchPlan::Way::kMpirun:
      check_slots(plan.ranks, plan.hosts, plan, facts);
      check_root(plan, facts);
      plan.launcher = fmt::format("Open MPI {}", facts.mpirun_version);
      plan.command = mpirun_command(plan, facts);
      set_launcher_environment(plan, facts);
      break;
    case LaunchPlan::Way::kSrun:
      plan.launcher = "srun of Slurm";
      plan.command = srun_command(plan, facts);
      break;
    case LaunchPlan::Way::kDirect:
      check_slots(plan.ranks, plan.hosts, plan, facts);
      plan.launcher = "none: launch starts the ranks itself";
      plan.ranks_here = local_ranks(plan, facts);
      break;
  }
  return plan;
}

std::string to_text(const LaunchPlan& plan) {
  const LaunchOptions& options = plan.options;
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
  };
  row("launcher", plan.launcher);
  std::vector<std::string> hosts;
  for (const LaunchHost& host : plan.hosts) {
    hosts.push_back(host.slots > 0 ? fmt::format("{} ({} slots)", host.name, host.slots)
                                   : host.name);
  }
  row("ranks",
      fmt::format("{} on {}", plan.ranks,
                  hosts.empty() ? "this host" : fmt::format("{}", fmt::join(hosts, ", "))));
  int first = 0;
  for (const LaunchPlan::Context& context : plan.contexts) {
    const int last = first + context.ranks - 1;
    row(first == last ? fmt::format("rank {}", first) : fmt::format("ranks {}-{}", first, last),
        shell_text(context.command) +
            (context.working_folder.empty() ? "" : "   in " + context.working_folder));
    first = last + 1;
  }
  if (!plan.command.empty()) row("command", shell_text(plan.command));
  for (const auto& [name, value] : plan.environment) {
    row("variable", fmt::format("{}={}", name, name == kJobSecretVariable ? "(hidden)" : value));
  }
  for (const auto& [name, value] : plan.launcher_environment) {
    row("mpirun's", fmt::format("{}={}", name, value));
  }
  if (!options.output_folder.empty()) {
    row("output", fmt::format("{}/1/rank.N/stdout and stderr", options.output_folder));
  }
  if (plan.trains) row("run", plan.run_directory);
  if (options.timeout_seconds > 0) row("time limit", fmt::format("{} s", options.timeout_seconds));
  if (options.exec) {
    row("supervision", "none: launch becomes this command");
  } else {
    row("signals", fmt::format("the first asks ranks to save and stop, then {} s; the second ends "
                               "them",
                               options.grace_seconds));
    const int restarts = options.max_restarts.value_or(0);
    const std::string fewer =
        options.min_ranks > 0 ? fmt::format(", on {} ranks or more", options.min_ranks) : "";
    row("restarts", restarts == 0 ? "none"
                                  : fmt::format("{} without progress, after {} s, doubled{}",
                                                restarts, options.restart_delay_seconds, fewer));
  }
  if (options.fewest_left > 0) {
    row("losses", fmt::format("the ranks that are left go on by themselves, down to {}",
                              options.fewest_left));
  }
  for (const std::string& note : plan.notes) row("note", note);
  return text;
}

}  // namespace lockstep::launcher
