#pragma once

#include <cstdint>

namespace lockstep::cuda {

/// Sets each row of `out` that is used to the sum of its uses, in order, or adds that sum to it.
struct EmbeddingSum {
  const uint32_t* rows;       ///< sorted rows; kNoPlace at the end
  const uint32_t* positions;  ///< positions of the uses, in the order of `rows`
  int64_t count;
  const void* grad;
  void* out;
  int64_t width;
  bool divides;  ///< divide by the number of uses
  bool adds;
};

}  // namespace lockstep::cuda
