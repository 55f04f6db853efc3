#pragma once

#include <cstdint>

#include "nn/multihead_attention.h"

namespace lockstep::nn {

/// The shape of scores.
struct ScoresShape {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
};

/// The masks as scaled_dot_product_attention takes them, in one that broadcasts to [batch, heads,
/// queries, keys]: bool, true where attention is allowed, unless one of them is floating. Undefined
/// where nothing is masked. `value` is a tensor of the attention's dtype. Throws ShapeError for a
/// mask of another shape.
Tensor combined_mask(const AttentionMasks& masks, const ScoresShape& scores, const Tensor& value);

}  // namespace lockstep::nn
