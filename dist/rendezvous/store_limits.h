#pragma once

#include <chrono>
#include <cstddef>

namespace lockstep::dist {

// What the store's server and those who are connected to it agree on.

/// How often each looks whether the other is still there.
inline constexpr std::chrono::milliseconds kLivenessInterval{1'000};
/// The shortest silence after which a rank may count as lost.
inline constexpr std::chrono::milliseconds kLeastSilence{1'000};
/// Largest size of messages kept for a peer that does not read; further ones are dropped.
inline constexpr size_t kHeldBytes = size_t{1} << 20;

}  // namespace lockstep::dist
