#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace lockstep::profile {

/// What memory is used for, as the phases tell in which it was requested and freed.
enum class MemoryUse : uint8_t {
  kBefore,       ///< was on loan when the profile began: parameters, optimizer state, data
  kActivations,  ///< requested in forward and kept beyond it
  kGradients,    ///< requested in backward and kept beyond it
  kOptimizer,    ///< requested by the optimizer and kept beyond it
  kTemporary,    ///< freed in the phase, of the same step, in which it was requested
};
inline constexpr int kMemoryUses = 5;
/// "before", "activations", ...
const char* name(MemoryUse use) noexcept;

/// Bytes on loan from a moment on, by use.
struct MemoryMoment {
  int64_t at_ns = 0;  ///< from the beginning of the profile
  std::array<int64_t, kMemoryUses> bytes{};

  /// The allocator's figure.
  int64_t total() const;
};

/// The bytes on loan after each request and each free, beginning with those at the profile's begin.
/// Empty where memory was not recorded.
std::vector<MemoryMoment> memory_timeline(const Profile& profile);

/// A line about the moment at which most bytes were on loan, or "".
std::string peak_text(const Profile& profile);

}  // namespace lockstep::profile
