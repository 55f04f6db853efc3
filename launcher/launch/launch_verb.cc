#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "configs/run.pb.h"
#include "configs/train.pb.h"
#include "configs/variables.h"
#include "core/base/check.h"
#include "core/base/log_text.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "launcher/exit_code.h"
#include "launcher/launch/launch_config.h"
#include "launcher/launch/launch_facts.h"
#include "launcher/launch/launch_options.h"
#include "launcher/launch/launch_plan.h"
#include "launcher/launch/launch_supervisor.h"
#include "launcher/standard_streams.h"
#include "launcher/verbs.h"
#include "train/report/run_directory.h"
#include "train/step_share.h"

namespace lockstep::launcher {
namespace {

/// Loads the config that `lockstep train` will load with this command line.
config::RunConfig config_of(const std::vector<std::string>& command) {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  size_t i = 0;
  for (; i < command.size() && command[i].ends_with(".txtpb"); ++i) files.push_back(command[i]);
  for (; i < command.size(); ++i) {
    constexpr std::string_view kSet = "--set=";
    if (command[i] == "--set" && i + 1 < command.size()) overrides.push_back(command[++i]);
    if (command[i].starts_with(kSet)) overrides.push_back(command[i].substr(kSet.size()));
  }
  return load_config(files, overrides);
}

/// Whether so many ranks can share the steps of a run.
bool can_share(const config::RunConfig& config, int ranks) {
  try {
    (void)train::share_of_step(config.train(), 0, ranks);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

/// A run directory that launch created; removed at the end if it is still empty.
class NewRunDirectory {
 public:
  explicit NewRunDirectory(const std::string& name)
      : path_(train::RunDirectory::create_new(name).path()) {}
  ~NewRunDirectory() { (void)::rmdir(path_.c_str()); }
  NewRunDirectory(const NewRunDirectory&) = delete;
  NewRunDirectory& operator=(const NewRunDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

[[noreturn]] void become(const LaunchPlan& plan) {
  const std::vector<LaunchPlan::Process> processes = processes_of(plan);
  LS_CHECK(processes.size() == 1, ConfigError,
           "[launch] --exec makes launch become what it starts: expected one process, got {} ranks "
           "without a launcher.",
           processes.size());
  const LaunchPlan::Process& process = processes[0];
  for (const auto* variables : {&process.environment, &plan.environment}) {
    for (const auto& [name, value] : *variables) {
      LS_CHECK(::setenv(name.c_str(), value.c_str(), 1) == 0, Error,
               "[launch] the environment cannot be set: {}.", std::strerror(errno));
    }
  }
  if (!process.working_folder.empty()) {
    LS_CHECK(::chdir(process.working_folder.c_str()) == 0, ConfigError,
             "[launch] the folder {} cannot be entered: {}.", process.working_folder,
             std::strerror(errno));
  }
  std::vector<char*> words;
  for (const std::string& word : process.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  restore_write_signals();
  ::execv(words[0], words.data());
  throw ConfigError(
      fmt::format("[launch] {} cannot be started: {}.", process.command[0], std::strerror(errno)));
}

/// The command that goes on with the training in `directory`; an empty one is named by the command
/// already.
std::string command_to_go_on(const std::vector<std::string>& arguments,
                             const LaunchOptions& options, const LaunchFacts& facts,
                             const std::string& directory) {
  std::vector<std::string> words = arguments;
  // The commands of the programs end where the arguments do, or before a ":".
  auto end = words.size();
  for (auto context = options.contexts.rbegin(); context != options.contexts.rend(); ++context) {
    const size_t begin = end - context->command.size();
    if (is_training(context->command)) {
      const std::string from_there =
          context->working_folder.empty() || directory.empty()
              ? directory
              : std::filesystem::absolute(directory).lexically_normal().string();
      const std::vector<std::string> changed = going_on(context->command, from_there);
      words.erase(words.begin() + static_cast<ptrdiff_t>(begin),
                  words.begin() + static_cast<ptrdiff_t>(end));
      words.insert(words.begin() + static_cast<ptrdiff_t>(begin), changed.begin(), changed.end());
    }
    for (end = begin; end > 0 && words[end] != ":"; --end) {
    }
  }
  return fmt::format("{}{} launch {}", assignments(config::process_variables()),
                     shell_text({facts.program}), shell_text(words));
}

void run_launch(const Verb& verb, const std::vector<std::string>& arguments) {
  LaunchOptions options = parse_launch_options(arguments);
  if (options.help) {
    fmt::print("{}", verb.help());
    return;
  }
  // From here on a signal is a request to stop, not the end of this program.
  std::optional<SignalQueue> signals;
  if (!options.dry_run && !options.exec) signals.emplace();
  LaunchFacts facts = find_launch_facts();
  std::string run_name;
  std::optional<config::RunConfig> trained;
  for (const LaunchContext& context : options.contexts) {
    if (!is_training(context.command) || !run_name.empty()) continue;
    trained = config_of(context.command);
    apply_launch_config(trained->launch(), options);
    if (trained->parallel().has_elastic() && !options.elastic) {
      options.fewest_left = static_cast<int>(trained->parallel().elastic().min_ranks());
    }
    run_name = trained->name();
  }
  facts.run_directory = fmt::format("runs/{}-DATE-TIME", run_name);
  const LaunchPlan plan = plan_launch(options, facts);
  if (options.dry_run) {
    fmt::print("{}", to_text(plan));
    return;
  }
  if (options.verbose) write_log(stderr, to_text(plan));
  for (const std::string& note : plan.notes) {
    if (!options.quiet) write_log(stderr, fmt::format("lockstep launch: {}\n", note));
  }
  std::optional<NewRunDirectory> directory;
  if (plan.trains && plan.run_directory.ends_with(facts.run_directory)) {
    directory.emplace(run_name);
    facts.run_directory = directory->path().string();
  }
  const std::string to_go_on = command_to_go_on(
      arguments, options, facts, directory ? directory->path().string() : std::string());
  if (options.exec) {
    if (plan.trains) {
      write_log(stderr, fmt::format("lockstep launch: to go on after a stop:\n  {}\n", to_go_on));
    }
    become(plan_launch(options, facts));
  }
  const int status = supervise_launch(
      *signals,
      [&](const LaunchStart& start) {
        facts.restart = start.restart;
        facts.ranks = start.ranks;
        facts.left_out = start.left_out;
        facts.keep_slow = start.keep_slow;
        return plan_launch(options, facts);
      },
      [&](int ranks) { return !trained || can_share(*trained, ranks); });
  if (status == kStopped && plan.trains)
    write_log(stderr, fmt::format("To go on:\n  {}\n", to_go_on));
  if (status != kSuccess) throw ExitStatus(status);
}

}  // namespace

void add_launch(const Verb& app, std::vector<std::string> arguments) {
  const Verb verb =
      app.verb("launch", "Start a run or any program on many ranks, with mpirun's options");
  verb.footer(
      "RUN.txtpb or PROGRAM follows the options, then its own options and arguments; \":\" begins "
      "another\nprogram of the same job:\n"
      "  lockstep launch -np 4 RUN.txtpb --set train.steps=100\n"
      "  lockstep launch -np 1 ./master : -np 3 ./worker --flag");
  verb.without_help_flag();
  // Only for help and completion: parse_launch_options parses the options, by mpirun's grammar.
  for (const LaunchOptionHelp& option : launch_option_help()) {
    verb.mention(option.names, option.value, option.text);
  }
  verb.runs([verb, arguments = std::move(arguments)] { run_launch(verb, arguments); });
}

}  // namespace lockstep::launcher
