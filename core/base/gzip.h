#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace lockstep {

/// Whether `bytes` begin as gzip's files do.
bool is_gzip(std::span<const std::byte> bytes);

/// What gzip packed into `bytes`, of one member or several. Throws DataError naming `path`, which
/// is for the message only, if they are damaged or cut off.
std::vector<std::byte> gunzip(std::span<const std::byte> bytes, const std::filesystem::path& path);

}  // namespace lockstep
