#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::dist {

// Parsers for two of Slurm's notations. They throw ConfigError, naming the problem, for malformed
// text and for more than a million elements.

/// Parses numbers of tasks by node: "4(x2),3" is 4, 4, 3.
std::vector<int> parse_tasks_per_node(std::string_view text);
/// Parses names of nodes: "n[01-03,7],login" is n01, n02, n03, n7, login.
std::vector<std::string> parse_node_list(std::string_view text);

}  // namespace lockstep::dist
