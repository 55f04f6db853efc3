#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::dist {

// Two notations of Slurm's. Throw ConfigError, saying what is wrong with the text, for anything
// else, and for more than a million elements.

/// Numbers of tasks, node by node: "4(x2),3" is 4, 4, 3.
std::vector<int> parse_tasks_per_node(std::string_view text);
/// Names of nodes: "n[01-03,7],login" is n01, n02, n03, n7, login.
std::vector<std::string> parse_node_list(std::string_view text);

}  // namespace lockstep::dist
