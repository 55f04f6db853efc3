#include "launcher/launch/local_ranks.h"

#include <string>
#include <utility>

#include "core/base/check.h"

namespace lockstep::launcher {
namespace {

/// The variables by which launchers tell rank `rank` of `size` on this host its number.
std::map<std::string, std::string> variables_of_rank(int rank, int size) {
  std::map<std::string, std::string> variables = {{"GROUP_RANK", "0"}, {"GROUP_WORLD_SIZE", "1"}};
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                           "OMPI_COMM_WORLD_NODE_RANK", "RANK", "LOCAL_RANK"}) {
    variables[name] = fmt::format("{}", rank);
  }
  for (const char* name :
       {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "WORLD_SIZE", "LOCAL_WORLD_SIZE"}) {
    variables[name] = fmt::format("{}", size);
  }
  return variables;
}

/// Tells the ranks where they meet. They have mpirun's names of their numbers, but no MPI.
void add_meeting_place(std::map<std::string, std::string>& variables, uint16_t port) {
  variables["LOCKSTEP_TRANSPORT"] = "tcp";
  for (const char* name : {"MASTER_ADDR", "LOCKSTEP_MASTER_ADDR"}) variables[name] = "127.0.0.1";
  for (const char* name : {"MASTER_PORT", "LOCKSTEP_MASTER_PORT"}) {
    variables[name] = fmt::format("{}", port);
  }
}

void note_options_without_effect(LaunchPlan& plan) {
  const LaunchOptions& options = plan.options;
  const auto note = [&](const std::string& option) {
    plan.notes.push_back(fmt::format(
        "ranks are started without a launcher, which {} is for; it is left out", option));
  };
  if (!options.bind_to.empty() && options.bind_to != "none") note("--bind-to " + options.bind_to);
  if (options.report_bindings) note("--report-bindings");
  if (!options.map_by.empty()) note("--map-by " + options.map_by);
  if (!options.rank_by.empty()) note("--rank-by " + options.rank_by);
  if (!options.prefix.empty()) note("--prefix " + options.prefix);
  if (!options.mca.empty()) note("--mca " + options.mca[0].first);
  if (!options.passed.empty()) note(fmt::format("{}", fmt::join(options.passed, " ")));
}

}  // namespace

std::vector<LaunchPlan::Process> local_ranks(LaunchPlan& plan, const LaunchFacts& facts) {
  note_options_without_effect(plan);
  plan.environment["LOCKSTEP_SUPERVISED"] = "1";
  if (plan.ranks > 1) add_meeting_place(plan.environment, facts.free_port());
  std::vector<LaunchPlan::Process> processes;
  for (size_t i = 0; i < plan.contexts.size(); ++i) {
    const LaunchPlan::Context& context = plan.contexts[i];
    LaunchPlan::Process process;
    process.command = context.command;
    process.command[0] =
        facts.find_program(process.command[0], context.working_folder).value_or("");
    process.working_folder = context.working_folder;
    for (int k = 0; k < context.ranks; ++k) {
      process.rank = static_cast<int>(processes.size());
      process.environment = variables_of_rank(process.rank, plan.ranks);
      for (const std::string& variable : plan.options.contexts[i].variables) {
        const size_t equals = variable.find('=');
        if (equals == variable.npos) continue;
        process.environment[variable.substr(0, equals)] = variable.substr(equals + 1);
      }
      processes.push_back(process);
    }
  }
  return processes;
}

}  // namespace lockstep::launcher
