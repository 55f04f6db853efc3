#include "launcher/launch/launch_options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/check.h"
#include "core/base/nearest.h"
#include "launcher/launch/launch_option_rows.h"

namespace lockstep::launcher {
namespace {

using Row = LaunchOptionRow;
using Target = LaunchOptionTarget;

/// Returns the name without leading dashes and with "-" for "_".
std::string plain_name(std::string_view argument) {
  argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
  std::string name(argument);
  std::ranges::replace(name, '_', '-');
  return name;
}

const Row& row_of(const std::string& name, const std::string& argument) {
  std::vector<std::string_view> known;
  for (const Row& row : launch_option_rows()) {
    if (std::ranges::find(row.names, std::string_view(name)) != row.names.end()) return row;
    if (row.text == nullptr) continue;
    for (const std::string_view each : row.names) {
      if (each.size() > 1) known.push_back(each);
    }
  }
  const std::optional<std::string_view> meant = nearest(name, known);
  throw ConfigError(fmt::format(
      "[launch] unknown option {}. {}", argument,
      meant ? fmt::format("Did you mean {}?", with_dashes(*meant))
            : "`lockstep launch --help` lists the options; those of the program follow it."));
}

/// Cuts the number off an option such as -n2 or -np4, and returns it; empty for other options.
std::string take_attached_number(std::string& argument) {
  const size_t digits = argument.find_first_of("0123456789");
  if (digits == argument.npos || argument.starts_with("--") ||
      argument.find_first_not_of("0123456789", digits) != argument.npos) {
    return "";
  }
  const std::string name = argument.substr(0, digits);
  constexpr std::array<std::string_view, 4> kCounts = {"-n", "-np", "-c", "-N"};
  if (std::ranges::find(kCounts, std::string_view(name)) == kCounts.end()) return "";
  std::string number = argument.substr(digits);
  argument = name;
  return number;
}

/// Parses the option at `at` and returns the index after its values.
size_t take_option(std::span<const std::string> arguments, size_t at, const Target& target) {
  std::string argument = arguments[at++];
  std::vector<std::string> values;
  if (const size_t equals = argument.find('='); equals != argument.npos) {
    values.push_back(argument.substr(equals + 1));
    argument.resize(equals);
  } else if (std::string number = take_attached_number(argument); !number.empty()) {
    values.push_back(std::move(number));
  }
  const Row& row = row_of(plain_name(argument), argument);
  LS_CHECK(!row.values.empty() || values.empty(), ConfigError,
           "[launch] {} takes no value: got {:?}.", argument, values[0]);
  while (values.size() < row.values.size() && row.text != nullptr) {
    LS_CHECK(at < arguments.size(), ConfigError, "[launch] {} needs {}: the line ends there.",
             argument, row.values[values.size()]);
    values.push_back(arguments[at++]);
  }
  row.apply(target, values);
  return at;
}

}  // namespace

LaunchOptions parse_launch_options(std::span<const std::string> arguments) {
  LaunchOptions options;
  LaunchContext context;
  bool tees = false;
  const auto close = [&](const char* where) {
    LS_CHECK(!context.command.empty(), ConfigError,
             "[launch] no program {}: expected `lockstep launch [options] RUN.txtpb` or `... "
             "PROGRAM [arguments]`.",
             where);
    options.contexts.push_back(std::exchange(context, {}));
  };
  for (size_t i = 0; i < arguments.size() && !options.help;) {
    const std::string& argument = arguments[i];
    if (argument == ":") {
      close("before \":\"");
      ++i;
    } else if (!context.command.empty()) {
      context.command.push_back(argument);
      ++i;
    } else if (argument == "--") {
      if (++i < arguments.size()) context.command.push_back(arguments[i++]);
    } else if (argument.size() > 1 && argument[0] == '-') {
      i = take_option(arguments, i, {options, context, tees});
    } else {
      context.command.push_back(argument);
      ++i;
    }
  }
  if (options.help) return options;
  close(options.contexts.empty() ? "given" : "after \":\"");
  LS_CHECK(!tees || !options.output_folder.empty(), ConfigError,
           "[launch] --tee chooses among streams that go to files: expected --log-dir with it.");
  LS_CHECK(options.min_ranks == 0 || options.contexts.size() == 1, ConfigError,
           "[launch] --min-ranks cannot tell which of several programs may have fewer ranks: "
           "expected one program, got {}.",
           options.contexts.size());
  LS_CHECK(!options.exec || options.max_restarts.value_or(0) == 0, ConfigError,
           "[launch] --exec leaves nobody who could restart: expected it without --max-restarts.");
  if (options.elastic) options.fewest_left = std::max(1, options.min_ranks);
  return options;
}

std::vector<LaunchOptionHelp> launch_option_help() {
  std::vector<LaunchOptionHelp> help;
  for (const Row& row : launch_option_rows()) {
    if (row.text == nullptr) continue;
    std::vector<std::string> names;
    for (const std::string_view name : row.names) names.push_back(with_dashes(name));
    std::ranges::stable_sort(names, {}, [](const std::string& name) { return name.size() > 2; });
    help.push_back({fmt::format("{}", fmt::join(names, ",")),
                    fmt::format("{}", fmt::join(row.values, " ")), row.text});
  }
  return help;
}

}  // namespace lockstep::launcher
