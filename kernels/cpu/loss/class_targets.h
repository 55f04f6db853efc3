#pragma once

#include <string_view>
#include <vector>

#include "core/tensor/kernel_arguments.h"

namespace lockstep::cpu {

inline constexpr int64_t kIgnoredClass = -1;

/// Reads class numbers as int64; those equal to `ignore_index` become kIgnoredClass. Throws
/// IndexError, naming `op`, for others outside [0, classes).
std::vector<int64_t> read_targets(std::string_view op, const In& target, int64_t classes,
                                  int64_t ignore_index);

/// Number of targets that are not ignored.
int64_t count_used(const std::vector<int64_t>& targets);

}  // namespace lockstep::cpu
