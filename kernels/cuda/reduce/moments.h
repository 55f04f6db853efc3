#pragma once

#include <cstdint>

namespace lockstep::cuda {

// Values of Reduction::variant for the folds of moments.cu.
inline constexpr int32_t kVariance = 0;
inline constexpr int32_t kStandardDeviation = 1;

inline constexpr int32_t kCountNonzero = 0;
inline constexpr int32_t kFirstPower = 1;
inline constexpr int32_t kAnyPower = 2;

}  // namespace lockstep::cuda
