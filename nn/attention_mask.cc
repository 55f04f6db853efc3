#include "nn/attention_mask.h"

#include <limits>
#include <vector>

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/view/view.h"

namespace lockstep::nn {

namespace {

Tensor padding_mask(const Tensor& mask, const ScoresShape& scores) {
  const Tensor rows = mask.dim() == 1 ? mask.unsqueeze(0) : mask;
  LS_CHECK(same(rows.sizes(), {scores.batch, scores.keys}), ShapeError,
           "[multihead_attention] key_padding_mask: expected {}, got {}.",
           to_string(IntList({scores.batch, scores.keys})), mask.shape());
  return rows.view({scores.batch, 1, 1, scores.keys});
}

Tensor score_mask(const Tensor& mask, const ScoresShape& scores) {
  if (mask.dim() == 3) {
    LS_CHECK(same(mask.sizes(), {scores.batch * scores.heads, scores.queries, scores.keys}),
             ShapeError, "[multihead_attention] attn_mask: expected {}, got {}.",
             to_string(IntList({scores.batch * scores.heads, scores.queries, scores.keys})),
             mask.shape());
    return mask.reshape({scores.batch, scores.heads, scores.queries, scores.keys});
  }
  LS_CHECK(same(mask.sizes(), {scores.queries, scores.keys}), ShapeError,
           "[multihead_attention] attn_mask: expected {}, got {}.",
           to_string(IntList({scores.queries, scores.keys})), mask.shape());
  return mask;
}

/// True for keys behind a query, where the last query is at the last key.
Tensor future_mask(const ScoresShape& scores, Device device) {
  const TensorOptions options(DType::kI64, device);
  const Tensor last = arange(scores.keys - scores.queries, scores.keys, options).unsqueeze(1);
  return arange(scores.keys, options) > last;
}

}  // namespace

Tensor combined_mask(const AttentionMasks& masks, const ScoresShape& scores, const Tensor& value) {
  std::vector<Tensor> given;
  if (masks.key_padding_mask.defined()) {
    given.push_back(padding_mask(masks.key_padding_mask, scores));
  }
  if (masks.attn_mask.defined()) given.push_back(score_mask(masks.attn_mask, scores));
  if (masks.is_causal) given.push_back(future_mask(scores, value.device()));
  Tensor banned;
  Tensor added;
  for (const Tensor& mask : given) {
    Tensor& sum = mask.dtype() == DType::kBool ? banned : added;
    if (!sum.defined()) {
      sum = mask;
    } else {
      sum = mask.dtype() == DType::kBool ? sum | mask : sum + mask;
    }
  }
  if (!added.defined()) return banned.defined() ? logical_not(banned) : Tensor();
  if (!banned.defined()) return added;
  const Tensor none = scalar_tensor(0, added.options());
  return added + masked_fill(none, banned, -std::numeric_limits<double>::infinity());
}

}  // namespace lockstep::nn
