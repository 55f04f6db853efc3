#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace lockstep {

// The control groups (version 1 and 2) of this process, read from /proc and /sys under `root`,
// which tests replace.

/// Folders of this process's control groups, innermost first, then their parents up to the mount.
/// `controller` matters for version 1 only, which has one hierarchy per controller.
std::vector<std::filesystem::path> control_groups(const std::filesystem::path& root,
                                                  std::string_view controller);

/// The tightest CPU quota of these groups, in cores; infinity if there is none.
double core_quota(const std::filesystem::path& root = "/");

}  // namespace lockstep
