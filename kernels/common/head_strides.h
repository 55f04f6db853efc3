#pragma once

#include "core/tensor/kernel_arguments.h"

namespace lockstep {

/// Places of the rows of a tensor [batch, heads, positions, depth] of any strides. Tensors of fewer
/// dimensions, at least two, have batches or heads of size 1. Strides are in elements.
struct HeadStrides {
  explicit HeadStrides(const TensorArg& tensor)
      : heads(tensor.rank > 2 ? tensor.size(-3) : 1),
        positions(tensor.size(-2)),
        of_batch(tensor.rank > 3 ? tensor.stride(-4) : 0),
        of_head(tensor.rank > 2 ? tensor.stride(-3) : 0),
        of_position(tensor.stride(-2)),
        of_column(tensor.stride(-1)) {}

  /// Offset of row `i`, counted over batches, heads and positions.
  int64_t row(int64_t i) const {
    const int64_t head = i / positions;
    return head / heads * of_batch + head % heads * of_head + i % positions * of_position;
  }

  int64_t heads;
  int64_t positions;
  int64_t of_batch;
  int64_t of_head;
  int64_t of_position;
  int64_t of_column;
};

}  // namespace lockstep
