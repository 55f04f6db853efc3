#include "core/base/checked_int.h"

#include "core/base/check.h"

namespace lockstep {

void throw_int_overflow(std::string_view op) {
  throw ShapeError(fmt::format(
      "[{}] a size computed from the arguments is too large: expected one that a signed "
      "64-bit integer holds. Use smaller numbers.",
      op));
}

}  // namespace lockstep
