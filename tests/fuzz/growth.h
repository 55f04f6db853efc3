#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

/// Number of ways in which `grown` grows an input.
inline constexpr size_t kWaysToGrow = 4;

/// Grows an input to at most `most` bytes where depth and length matter, which single mutations do
/// not reach. `choice` selects the way, choice % kWaysToGrow, and a stretch of the input: the
/// stretch is repeated, or put into as many brackets [ ], objects {"a": } or parentheses ( ) as
/// fit. Pure.
std::string grown(Input input, uint64_t choice, size_t most);

}  // namespace lockstep::fuzz
