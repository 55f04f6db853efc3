#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/shape.h"

namespace lockstep {

/// Offsets of all elements of a layout in row-major order, enumerated one by one.
inline std::vector<int64_t> places(IntList sizes, IntList strides) {
  std::vector<int64_t> all = {0};
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<int64_t> next;
    for (int64_t outer : all) {
      for (int64_t k = 0; k < sizes[i]; ++k) next.push_back(outer + k * strides[i]);
    }
    all = next;
  }
  return all;
}

}  // namespace lockstep
