#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/shape.h"
#include "kernels/common/sort_keys.h"

namespace lockstep {

/// Describes the lines of `self` along `dim`.
inline SortLines sort_lines(const In& self, int64_t dim) {
  SortLines lines;
  if (self.rank == 0) return lines;
  const int d = static_cast<int>(wrap_dim("sort", dim, self.rank));
  lines.n = self.size(d);
  for (int i = 0; i < d; ++i) lines.outer *= self.size(i);
  for (int i = d + 1; i < self.rank; ++i) lines.inner *= self.size(i);
  return lines;
}

}  // namespace lockstep
