#pragma once

#include <chrono>
#include <cstddef>

namespace lockstep::dist {

// What the store's server and those who are connected to it agree on.

/// How often each looks whether the other is still there.
inline constexpr std::chrono::milliseconds kLivenessInterval{1'000};
/// The shortest silence after which a rank may count as lost.
inline constexpr std::chrono::milliseconds kLeastSilence{1'000};
/// What is kept for one that does not read; beyond this it is dropped.
inline constexpr size_t kHeldBytes = size_t{1} << 20;

}  // namespace lockstep::dist
