#pragma once

#include <cstdint>

namespace lockstep::nn {

/// What of a block backward computes again instead of finding it in memory. No choice changes a
/// bit of gradients.
enum class Recompute {
  kNone,   ///< nothing
  kCheap,  ///< all but products, convolutions and attention, whose results are kept
  kBlock,  ///< everything but the block's input
};

struct RecomputeOptions {
  Recompute what = Recompute::kNone;
  int64_t blocks = 1;  ///< kBlock: so many blocks keep one input
  /// kCheap: the gelu of linear_gelu is computed again as well. False where a product computes it
  /// from sums that it does not store, as cuBLASLt does: no other kernel gives its bits.
  bool gelu = true;
};

}  // namespace lockstep::nn
