#include "kernels/cpu/zero_divisor.h"

#include "core/base/check.h"

namespace lockstep::cpu {

void ZeroDivisor::fail() const {
  throw Error(fmt::format(
      "[{}] integer division by zero: expected divisors other than 0 for a result of {}, got "
      "shapes {} ({}) and {} ({}) with a 0 in the second. Cast to a floating dtype for inf or NaN.",
      op_, to_string(out_.dtype), to_string(self_.sizes()), to_string(self_.dtype),
      to_string(other_.sizes()), to_string(other_.dtype)));
}

}  // namespace lockstep::cpu
