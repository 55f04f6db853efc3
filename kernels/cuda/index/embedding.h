#pragma once

#include <cstdint>

namespace lockstep::cuda {

/// Each row of `out` that has uses becomes their sum, in order.
struct EmbeddingSum {
  const uint32_t* rows;       ///< sorted; kNoPlace at the end
  const uint32_t* positions;  ///< of the uses, as `rows` is sorted
  int64_t count;
  const void* grad;
  void* out;
  int64_t width;
  bool divides;  ///< by the number of uses
};

}  // namespace lockstep::cuda
