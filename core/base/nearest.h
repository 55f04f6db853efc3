#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace lockstep {

/// The name in `known` that `wanted` was most likely meant to be, for "Did you mean ...?".
///
/// Closeness is the number of single-character insertions, deletions, substitutions and swaps of
/// neighbours (optimal string alignment), upper and lower case counting as equal. Names further
/// away than a third of the length of `wanted` (at least 1, at most 4) are no suggestion. The first
/// of equally close names wins. The result points into `known`.
std::optional<std::string_view> nearest(std::string_view wanted,
                                        std::span<const std::string_view> known);

}  // namespace lockstep
