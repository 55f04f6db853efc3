#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "configs/annotated_text.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "launcher/exit_code.h"
#include "launcher/load_option.h"
#include "launcher/verbs.h"

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

void print_config(const Sources& sources) {
  const std::vector<Plugin> plugins = load_plugins(sources.plugins);
  config::Origins origins;
  const config::RunConfig config = load(sources, origins);
  fmt::print("{}", config::annotated_text(config, origins));
}

void check_config(const Sources& sources) {
  const std::vector<Plugin> plugins = load_plugins(sources.plugins);
  config::Origins origins;
  const config::RunConfig config = load(sources, origins);
  fmt::print("{}: ok\n", config.name());
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
  const Verb print = config.verb("print", "The whole config, with the origin of every value");
  add_config_options(print, printed->files, printed->overrides);
  add_load_option(print, printed->plugins);
  print.runs([printed] { print_config(*printed); });

  auto checked = std::make_shared<Sources>();
  const Verb check = config.verb("check", "Exit status 0 if training would accept it, 2 if not");
  add_config_options(check, checked->files, checked->overrides);
  add_load_option(check, checked->plugins);
  check.runs([checked] { check_config(*checked); });

  auto a = std::make_shared<std::string>();
  auto b = std::make_shared<std::string>();
  const Verb diff =
      config.verb("diff", "Values that differ, defaults filled in. Exit status 0: none, 1: some");
  diff.option("a", *a, "Config file or run directory").required();
  diff.option("b", *b, "Config file or run directory").required();
  diff.runs([a, b] { diff_configs(*a, *b); });
}

}  // namespace lockstep::launcher
