#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// The files that `pattern` matches, in an order that depends on their names alone. A file matches
/// itself. A folder matches all files in and below it, sorted by path, without hidden ones.
/// Anything else is a shell pattern (*, ?, [abc], {a,b}), whose matching files and folders are
/// sorted. Throws DataError if nothing matches.
std::vector<std::filesystem::path> find_files(const std::string& pattern);

}  // namespace lockstep
