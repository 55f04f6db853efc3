#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace lockstep::train {

/// Calls `line` with each line of a file that ends with '\n', and its number from 1. Holds no more
/// of the file than its longest line, so that it may be of any size. Returns whether text follows
/// the last line: a writer was cut short, or is at it. Throws FileError.
bool for_each_line(const std::filesystem::path& file,
                   const std::function<void(std::string_view line, int64_t number)>& line);

}  // namespace lockstep::train
