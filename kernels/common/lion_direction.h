#pragma once

#include "core/base/host_device.h"

namespace lockstep {

/// The sign of c as Lion's step takes it: -1, 0 or 1, and NaN for NaN.
template <class T>
LS_HOST_DEVICE T lion_direction(T c) {
  if (c > T(0)) return T(1);
  return c < T(0) ? T(-1) : c;
}

}  // namespace lockstep
