#include "dist/rendezvous/rank_environment.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/parse_number.h"
#include "dist/rendezvous/slurm_lists.h"

namespace lockstep::dist {
namespace {

/// A number with the variable or option that gave it.
struct SourcedNumber {
  int value = 0;
  std::string variable;
};
using MaybeNumber = std::optional<SourcedNumber>;

/// The values given by one launcher.
struct Set {
  const char* source = "";
  MaybeNumber rank, size, local_rank, local_size, node_rank, node_count;
  bool one_on_each_node = false;  ///< whether each node has one rank, as far as known
};

std::string assignment(const SourcedNumber& told) {
  return fmt::format("{}={}", told.variable, told.value);
}

class Variables {
 public:
  explicit Variables(const Lookup& lookup) : lookup_(lookup) {}

  /// Returns the variable's value; empty if it is not set.
  std::string text(const char* name) const {
    const char* value = lookup_(name);
    return value == nullptr ? "" : value;
  }
  /// Returns name and value of the first variable that is set.
  std::pair<const char*, std::string> first(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      std::string value = text(name);
      if (!value.empty()) return {name, std::move(value)};
    }
    return {"", ""};
  }
  MaybeNumber number(std::initializer_list<const char*> names) const {
    const auto [name, value] = first(names);
    if (value.empty()) return std::nullopt;
    const std::optional<int> number = parse_number<int>(value);
    LS_CHECK(number && *number >= 0, ConfigError,
             "[launch] {}=\"{:.40}\" is set: expected a number, 0 or more. Unset it or mend it.",
             name, value);
    return SourcedNumber{*number, name};
  }

 private:
  const Lookup& lookup_;
};

MaybeNumber told(const std::optional<int>& value, const char* option) {
  if (!value) return std::nullopt;
  LS_CHECK(*value >= 0, ConfigError, "[launch] {} {}: expected 0 or more.", option, *value);
  return SourcedNumber{*value, option};
}

Set given_set(const GivenRank& given) {
  return {.source = "the command line",
          .rank = told(given.rank, "--rank"),
          .size = told(given.size, "--ranks"),
          .local_rank = told(given.local_rank, "--local-rank"),
          .local_size = told(given.local_size, "--local-size"),
          .node_rank = {},
          .node_count = {}};
}

/// Reads the number of tasks on this node from a list such as "4(x2),3" and the node's number.
void read_tasks_per_node(const Variables& variables, Set& set) {
  const auto [name, text] = variables.first({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  if (text.empty()) return;
  std::vector<int> tasks;
  try {
    tasks = parse_tasks_per_node(text);
  } catch (Error& error) {
    error.add_note(fmt::format("It is the value of {}.", name));
    throw;
  }
  set.one_on_each_node = std::ranges::max(tasks) == 1;
  const auto node = static_cast<size_t>(set.node_rank ? set.node_rank->value : 0);
  if ((set.node_rank || tasks.size() == 1) && node < tasks.size()) {
    set.local_size = SourcedNumber{tasks[node], name};
  }
}

Set slurm_set(const Variables& variables) {
  Set set;
  set.source = "Slurm's variables";
  // A batch script has the job's variables, but is not a task of a step.
  if (variables.text("SLURM_STEP_ID").empty()) return set;
  set.rank = variables.number({"SLURM_PROCID"});
  set.size = variables.number({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"});
  set.local_rank = variables.number({"SLURM_LOCALID"});
  set.node_rank = variables.number({"SLURM_NODEID"});
  set.node_count = variables.number({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"});
  read_tasks_per_node(variables, set);
  return set;
}

/// Returns all sets of variables, in order of precedence.
std::vector<Set> variable_sets(const Variables& variables) {
  const auto number = [&](const char* name) { return variables.number({name}); };
  std::vector<Set> sets = {{.source = "Lockstep's variables",
                            .rank = number("LOCKSTEP_RANK"),
                            .size = number("LOCKSTEP_WORLD_SIZE"),
                            .local_rank = number("LOCKSTEP_LOCAL_RANK"),
                            .local_size = number("LOCKSTEP_LOCAL_WORLD_SIZE"),
                            .node_rank = number("LOCKSTEP_NODE_RANK"),
                            .node_count = number("LOCKSTEP_NODE_COUNT")},
                           {.source = "torchrun's variables",
                            .rank = number("RANK"),
                            .size = number("WORLD_SIZE"),
                            .local_rank = number("LOCAL_RANK"),
                            .local_size = number("LOCAL_WORLD_SIZE"),
                            .node_rank = number("GROUP_RANK"),
                            .node_count = number("GROUP_WORLD_SIZE")},
                           {.source = "Open MPI's variables",
                            .rank = number("OMPI_COMM_WORLD_RANK"),
                            .size = number("OMPI_COMM_WORLD_SIZE"),
                            .local_rank = number("OMPI_COMM_WORLD_LOCAL_RANK"),
                            .local_size = number("OMPI_COMM_WORLD_LOCAL_SIZE"),
                            // OMPI_COMM_WORLD_NODE_RANK is a rank on the node, not of the node.
                            .node_rank = {},
                            .node_count = {}},
                           {.source = "PMI's variables",
                            .rank = number("PMI_RANK"),
                            .size = number("PMI_SIZE"),
                            .local_rank = number("MPI_LOCALRANKID"),
                            .local_size = number("MPI_LOCALNRANKS"),
                            .node_rank = {},
                            .node_count = {}}};
  for (Set& set : sets) {
    set.one_on_each_node = set.local_size && set.local_size->value == 1;
  }
  sets.push_back(slurm_set(variables));
  return sets;
}

void check_less(const char* source, const MaybeNumber& number, const MaybeNumber& count) {
  if (!number || !count) return;
  LS_CHECK(number->value < count->value, ConfigError,
           "[launch] {}: {} is not less than {}. Ranks count from 0.", source, assignment(*number),
           assignment(*count));
}

/// Whether the set gives a rank. Throws ConfigError if it is incomplete or inconsistent.
bool is_complete(const Set& set) {
  const MaybeNumber* any = nullptr;
  for (const MaybeNumber* part : {&set.rank, &set.size, &set.local_rank, &set.local_size}) {
    if (*part && any == nullptr) any = part;
  }
  if (any == nullptr) return false;
  LS_CHECK(set.rank && set.size, ConfigError,
           "[launch] {} are incomplete: {} is set, but no {}. Set or unset them all.", set.source,
           assignment(**any), set.rank ? "number of ranks" : "rank");
  check_less(set.source, set.rank, set.size);
  check_less(set.source, set.local_rank, set.local_size);
  check_less(set.source, set.node_rank, set.node_count);
  return true;
}

/// Whether the tasks of `set` are the launchers that started the ranks of `first`.
bool is_launcher_of(const Set& set, const Set& first) {
  return set.size->value < first.size->value && (set.one_on_each_node || set.size->value == 1);
}

void merge(MaybeNumber& into, const MaybeNumber& other) {
  if (!other) return;
  if (!into) into = other;
  LS_CHECK(into->value == other->value, ConfigError,
           "[launch] {} and {} contradict each other: two launchers left their variables. Unset "
           "those that are not meant.",
           assignment(*into), assignment(*other));
}

void merge(Set& into, const Set& other) {
  merge(into.rank, other.rank);
  merge(into.size, other.size);
  merge(into.local_rank, other.local_rank);
  merge(into.local_size, other.local_size);
  // Launchers number nodes differently: take both values from the same set.
  if (!into.node_rank && !into.node_count) {
    into.node_rank = other.node_rank;
    into.node_count = other.node_count;
  }
}

/// A pod's index is a rank where nothing but the number of ranks is told. Takes that number out of
/// the sets of Lockstep's and torchrun's names, which lack a rank.
Set kubernetes_set(const Variables& variables, const Set& given, std::vector<Set>& sets) {
  Set set;
  set.source = "Kubernetes' variables";
  const MaybeNumber index = variables.number({"JOB_COMPLETION_INDEX"});
  if (!index) return set;
  set.size = given.size;
  for (Set& other : sets) {
    if (other.rank || !other.size) continue;
    if (!set.size) set.size = other.size;
    other.size.reset();
  }
  if (set.size) set.rank = index;
  return set;
}

/// What the launchers and the command line say together.
struct Told {
  Set set;  ///< the source is that of the first complete set
  bool in_slurm_step = false;
  bool under_mpi = false;
};

Told merged_sets(const Variables& variables, const GivenRank& given) {
  const Set whole = given_set(given);
  LS_CHECK(!whole.rank || whole.size, ConfigError,
           "[launch] --rank {} is given without the number of ranks: expected --ranks, too.",
           whole.rank ? whole.rank->value : 0);
  if (whole.rank) return {whole};
  std::vector<Set> sets = variable_sets(variables);
  const Set pod = kubernetes_set(variables, whole, sets);
  Told result;
  std::optional<Set> told;
  for (const Set& set : sets) {
    if (!is_complete(set)) continue;
    const std::string_view source = set.source;
    if (!told) {
      told = set;
    } else if (is_launcher_of(set, *told)) {
      continue;
    } else {
      merge(*told, set);
    }
    const bool is_slurm = source.starts_with("Slurm");
    result.in_slurm_step = result.in_slurm_step || is_slurm;
    result.under_mpi = result.under_mpi || source.starts_with("Open MPI") ||
                       source.starts_with("PMI") ||
                       (is_slurm && !variables.text("PMIX_RANK").empty());
  }
  if (!told && is_complete(pod)) told = pod;
  if (!told) {
    result.set = whole;
    if (!whole.size) result.set.source = "nobody";
    return result;
  }
  if (whole.size) merge(told->size, whole.size);
  if (whole.local_rank) told->local_rank = whole.local_rank;
  if (whole.local_size) told->local_size = whole.local_size;
  result.set = *told;
  return result;
}

std::optional<int> value_of(const MaybeNumber& told) {
  return told ? std::optional(told->value) : std::nullopt;
}

std::optional<uint16_t> master_port(const Variables& variables, const GivenRank& given) {
  constexpr int kLast = 65535;
  MaybeNumber port = told(given.master_port, "--master-port");
  if (!port) port = variables.number({"LOCKSTEP_MASTER_PORT"});
  const bool ours = port.has_value();
  if (!port) port = variables.number({"MASTER_PORT"});
  if (!port) return std::nullopt;
  LS_CHECK(port->value >= 1 && port->value <= kLast, ConfigError,
           "[launch] {}: expected a port from 1 to {}.", assignment(*port), kLast);
  if (!ours && variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    port->value += port->value < kLast ? 1 : -1;
  }
  return static_cast<uint16_t>(port->value);
}

std::string master_address(const Variables& variables, const GivenRank& given, bool in_slurm_step) {
  if (!given.master_address.empty()) return given.master_address;
  std::string address = variables.first({"LOCKSTEP_MASTER_ADDR", "MASTER_ADDR"}).second;
  if (!address.empty() || !in_slurm_step) return address;
  const std::string nodes = variables.text("SLURM_STEP_NODELIST");
  return nodes.empty() ? "" : parse_node_list(nodes).front();
}

std::string job_id(const Variables& variables) {
  for (const char* name : {"LOCKSTEP_JOB_ID", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"}) {
    std::string id = variables.text(name);
    // "none" is torchrun's id for a job without a name.
    if (!id.empty() && id != "none") return id;
  }
  const std::string job = variables.text("SLURM_JOB_ID");
  const std::string step = variables.text("SLURM_STEP_ID");
  return job.empty() || step.empty() ? job : job + "." + step;
}

}  // namespace

RankEnvironment rank_environment(const Lookup& lookup, const GivenRank& given) {
  const Variables variables(lookup);
  const Told all = merged_sets(variables, given);
  const Set& told = all.set;
  check_less(told.source, told.rank, told.size);
  check_less(told.source, told.local_rank, told.local_size);
  LS_CHECK(!told.local_size || !told.size || told.local_size->value <= told.size->value,
           ConfigError, "[launch] {}: {} is more than {}.", told.source,
           assignment(*told.local_size), assignment(*told.size));
  RankEnvironment environment;
  environment.rank = value_of(told.rank).value_or(0);
  environment.size = value_of(told.size).value_or(1);
  LS_CHECK(environment.size >= 1, ConfigError, "[launch] {}: expected at least 1.",
           assignment(*told.size));
  environment.numbered = told.rank || environment.size == 1;
  environment.local_rank = value_of(told.local_rank);
  environment.local_size = value_of(told.local_size);
  environment.node_rank = value_of(told.node_rank);
  environment.node_count = value_of(told.node_count);
  if (environment.size == 1) {
    environment.local_rank = 0;
    environment.local_size = 1;
  }
  environment.source = told.source;
  environment.in_kubernetes = !variables.text("KUBERNETES_SERVICE_HOST").empty();
  environment.under_mpi = all.under_mpi;
  environment.master_address = master_address(variables, given, all.in_slurm_step);
  environment.master_port = master_port(variables, given);
  environment.job_id = job_id(variables);
  const MaybeNumber restarts = variables.number(
      {"LOCKSTEP_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"});
  environment.restart_count = restarts ? restarts->value : 0;
  return environment;
}

std::string to_string(const RankEnvironment& environment) {
  std::string text =
      fmt::format("rank {} of {} ({})", environment.rank, environment.size, environment.source);
  if (environment.local_rank && environment.local_size) {
    text += fmt::format(", local rank {} of {}", *environment.local_rank, *environment.local_size);
  }
  return text;
}

}  // namespace lockstep::dist
