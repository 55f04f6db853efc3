#pragma once

#include <filesystem>
#include <string_view>

namespace lockstep::dist {

/// Replaces the contents of `path`, whole or not at all even if the machine stops in between: it is
/// written beside, synced and renamed. Throws DataError naming the path and the system's reason.
void write_whole_file(const std::filesystem::path& path, std::string_view content);

}  // namespace lockstep::dist
