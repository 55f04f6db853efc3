#pragma once

#include <limits>

namespace lockstep {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// The same in f32, for functions of floats.
inline constexpr float kInfinityF32 = std::numeric_limits<float>::infinity();
inline constexpr float kNaNF32 = std::numeric_limits<float>::quiet_NaN();

}  // namespace lockstep
