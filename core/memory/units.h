#pragma once

#include <cstddef>

namespace lockstep {

inline constexpr size_t kMiB = size_t{1} << 20;

/// The least multiple of `unit` that is not less than `bytes`.
constexpr size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace lockstep
