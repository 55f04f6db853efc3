#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace lockstep {

/// Whether `bytes` begin with gzip's magic number.
bool is_gzip(std::span<const std::byte> bytes);

/// Decompresses gzip data of one or more members. Throws DataError naming `path` (used only for the
/// message) if they are damaged or truncated.
std::vector<std::byte> gunzip(std::span<const std::byte> bytes, const std::filesystem::path& path);

}  // namespace lockstep
