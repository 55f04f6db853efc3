#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "configs/annotated_text.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "configs/variables.h"
#include "launcher/command_line.h"
#include "launcher/config_fields.h"
#include "launcher/config_options.h"
#include "launcher/exit_code.h"
#include "launcher/load_option.h"
#include "launcher/memory_room.h"
#include "launcher/verbs.h"
#include "train/build.h"
#include "train/run/check_parts.h"
#include "train/run/plan.h"

namespace lockstep::launcher {

namespace {

struct Sources {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::vector<std::string> plugins;  ///< may name a device
};

config::RunConfig load(const Sources& sources, config::Origins& origins) {
  return load_config(sources.files, sources.overrides, &origins);
}

/// Prints the defaults, with what variables and --set change, and what a run needs besides.
void print_defaults(const Sources& sources) {
  config::RunConfig config;
  config::Origins origins;
  config::apply_variables(config, origins, config::process_variables());
  for (const std::string& assignment : sources.overrides) {
    config::set_value(config, origins, assignment);
  }
  const std::vector<std::string> missing = config::set_defaults(config, origins);
  fmt::print("{}", config::annotated_text(config, origins));
  if (missing.empty()) return;
  fmt::print("\n# Required, and not set here (`lockstep config fields` explains every field):\n");
  for (const std::string& field : missing) fmt::print("#   {}\n", field);
}

void print_config(const Sources& sources) {
  const std::vector<Plugin> plugins = load_plugins(sources.plugins);
  if (sources.files.empty()) return print_defaults(sources);
  config::Origins origins;
  const config::RunConfig config = load(sources, origins);
  fmt::print("{}", config::annotated_text(config, origins));
}

/// Number of ranks to check for: as told, as `lockstep launch` would start, or one.
int64_t ranks_of(const config::RunConfig& config, int64_t wanted) {
  if (wanted > 0) return wanted;
  return std::max(1, config.launch().np());
}

void check_config(const Sources& sources, int64_t wanted_ranks) {
  const std::vector<Plugin> plugins = load_plugins(sources.plugins);
  config::Origins origins;
  const config::RunConfig config = load(sources, origins);
  const int64_t ranks = ranks_of(config, wanted_ranks);
  const Device device = train::device_of(config);
  // Ranks on other hosts have memory of their own; without hosts all are here.
  const int64_t here =
      config.launch().hosts().empty() && config.launch().hostfile().empty() ? ranks : 1;
  require_room(train::plan_run(config, ranks), memory_room(device, static_cast<int>(here)));
  train::check_parts(config, ranks);
  fmt::print("{}: ok{}\n", config.name(), ranks == 1 ? "" : fmt::format(", on {} ranks", ranks));
}

/// Loads the file, or the config of the run directory, without environment variables and flags.
config::RunConfig load_alone(const std::string& path, bool& is_named) {
  std::error_code failed;
  const bool is_run = std::filesystem::is_directory(path, failed);
  const std::vector<std::string> files = {is_run ? path + "/config.txtpb" : path};
  config::Origins origins;
  config::RunConfig config = config::load(files, {}, &origins);
  is_named = origins["name"] != "default";
  return config;
}

void diff_configs(const std::string& a, const std::string& b) {
  bool a_is_named = false;
  bool b_is_named = false;
  const config::RunConfig of_a = load_alone(a, a_is_named);
  config::RunConfig of_b = load_alone(b, b_is_named);
  // If neither config sets a name, both names are just file names and no difference.
  if (!a_is_named && !b_is_named) of_b.set_name(of_a.name());
  const std::vector<config::Difference> found = config::differences(of_a, of_b);
  size_t width = 0;
  for (const config::Difference& difference : found) {
    width = std::max(width, difference.path.size());
  }
  const auto shown = [](const std::string& value) { return value.empty() ? "not set" : value; };
  for (const config::Difference& difference : found) {
    fmt::print("{:<{}}  {} -> {}\n", difference.path, width, shown(difference.a),
               shown(difference.b));
  }
  if (!found.empty()) throw ExitStatus(kFailure);
}

}  // namespace

void add_config(const Verb& app) {
  const Verb config = app.verb("config", "Print, check or compare run configs");
  config.requires_verb();

  auto printed = std::make_shared<Sources>();
  const Verb print = config.verb(
      "print", "The whole config, with the origin of every value; without a file, the defaults");
  add_config_options(print, printed->files, printed->overrides).required(false);
  add_load_option(print, printed->plugins);
  print.runs([printed] { print_config(*printed); });

  auto checked = std::make_shared<Sources>();
  auto ranks = std::make_shared<int64_t>(0);
  const Verb check = config.verb(
      "check", "Whether training would accept it: fields, device, memory, weights, and the data");
  add_config_options(check, checked->files, checked->overrides);
  add_load_option(check, checked->plugins);
  check.option("--ranks", *ranks, "For this many ranks (default: launch.np, or 1)")
      .between(1, 1 << 20);
  check.runs([checked, ranks] { check_config(*checked, *ranks); });

  add_config_fields(config);

  auto a = std::make_shared<std::string>();
  auto b = std::make_shared<std::string>();
  const Verb diff =
      config.verb("diff", "Values that differ, defaults filled in. Exit status 0: none, 1: some");
  diff.option("a", *a, "Config file or run directory").required();
  diff.option("b", *b, "Config file or run directory").required();
  diff.runs([a, b] { diff_configs(*a, *b); });
}

}  // namespace lockstep::launcher
