#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

/// Digits in groups of three: "1,234,567".
std::string grouped(int64_t value);

/// A bound as people write it: powers of two from 2^17 and powers of ten from 10^7 as powers, the
/// largest values of 32 and 64 bits as "2^63 - 1", other numbers in digits: "4096", "2^50",
/// "10^12".
std::string bound_text(int64_t value);
std::string bound_text(uint64_t value);
/// As above for real numbers, which below 10^7 are written in as few digits as they need.
std::string bound_text(double value);

}  // namespace lockstep
