#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep {

/// (sum of size(i)^p)^(1 / p) over n sizes >= 0. p = 0 counts the nonzero sizes; p = infinity takes
/// the largest, or NaN if there is one.
template <class Size>
LS_HOST_DEVICE double p_distance(int64_t n, double p, const Size& size) {
  double total = 0;
  if (p == 0) {
    for (int64_t i = 0; i < n; ++i) total += size(i) != 0 ? 1 : 0;
  } else if (p == 1) {
    for (int64_t i = 0; i < n; ++i) total += size(i);
  } else if (p == 2) {
    for (int64_t i = 0; i < n; ++i) total += size(i) * size(i);
    total = std::sqrt(total);
  } else if (std::isinf(p)) {
    for (int64_t i = 0; i < n; ++i) {
      const double each = size(i);
      total = each > total || each != each ? each : total;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) total += std::pow(size(i), p);
    total = std::pow(total, 1 / p);
  }
  return total;
}

}  // namespace lockstep
