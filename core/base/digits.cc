#include "core/base/digits.h"

namespace lockstep {

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  const int64_t first = value < 0 ? 1 : 0;
  for (int64_t at = std::ssize(digits) - 3; at > first; at -= 3) {
    digits.insert(digits.begin() + at, ',');
  }
  return digits;
}

}  // namespace lockstep
