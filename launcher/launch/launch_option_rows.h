#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/launch/launch_options.h"

namespace lockstep::launcher {

// The table of the options of `lockstep launch`: names, values, help and effect.

/// What an option's function may change: all options, and the context being parsed.
struct LaunchOptionTarget {
  LaunchOptions& options;
  LaunchContext& context;
  bool& tees;  ///< whether --tee was given
};

/// An option.
struct LaunchOptionRow {
  std::vector<std::string_view> names;  ///< messages show the first
  std::vector<std::string_view> values;
  const char* text;  ///< help text; null for options that are rejected
  /// Takes as many values as are named.
  std::function<void(LaunchOptionTarget, std::span<const std::string>)> apply;
};

/// All options, in the order of the help.
const std::vector<LaunchOptionRow>& launch_option_rows();

/// "-n" for "n", "--np" for "np".
std::string with_dashes(std::string_view name);

}  // namespace lockstep::launcher
