#pragma once

#include <filesystem>
#include <string_view>

namespace lockstep {

/// Creates `path` and its missing parents, and syncs every folder that got an entry by that: the
/// new folders outlast a power cut. A folder that exists is left alone. Throws DataError naming
/// `subject`, the path and the system's reason.
void create_folders(const std::filesystem::path& path, std::string_view subject);

/// Waits until the names in a folder are on stable storage. Throws DataError.
void sync_folder(const std::filesystem::path& path);

/// Whether there is anything under that name; a symbolic link is not followed. Throws DataError if
/// that cannot be told, which std::filesystem::exists with an error code takes for "no".
bool name_exists(const std::filesystem::path& path);

}  // namespace lockstep
