#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// The files that `pattern` means, in an order that depends on their names alone: a file itself; of
/// a folder, all files in it and below, hidden ones left out, sorted by path; else every file and
/// folder that matches the shell pattern (*, ?, [abc], {a,b}), sorted. Throws DataError if that is
/// none.
std::vector<std::filesystem::path> find_files(const std::string& pattern);

/// The bytes of a file. Throws DataError naming the path and the system's reason.
std::string read_text_file(const std::filesystem::path& path);

}  // namespace lockstep
