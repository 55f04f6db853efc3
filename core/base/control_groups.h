#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace lockstep {

// The control groups (version 1 and 2) of this process, read from /proc and /sys under `root`,
// which tests replace.

/// Where they keep their files: this process's groups first, then what they are nested in.
/// `controller` matters to version 1 only, which has a tree for each.
std::vector<std::filesystem::path> control_groups(const std::filesystem::path& root,
                                                  std::string_view controller);

/// The tightest quota of processor time, in cores; infinity without one.
double core_quota(const std::filesystem::path& root = "/");

}  // namespace lockstep
