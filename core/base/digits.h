#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

/// Digits in groups of three: "1,234,567".
std::string grouped(int64_t value);

}  // namespace lockstep
