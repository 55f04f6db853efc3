#include "core/ops/attention/attention_math.h"

#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/loss/loss.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/norm_projection.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"

namespace lockstep {

namespace {

constexpr double kHiddenScore = -std::numeric_limits<double>::infinity();

Tensor transposed(const Tensor& matrices) { return matrices.transpose(-2, -1); }

/// Bool [rows, columns]: true where row t may attend to column s, i.e. s <= t.
Tensor causal_mask(int64_t rows, int64_t columns, Device device) {
  const TensorOptions options(DType::kI64, device);
  return ge(arange(rows, options).unsqueeze(1), arange(columns, options));
}

/// Sums `grad` over the query heads that share a head of `like`.
Tensor join_heads(const Tensor& grad, const Tensor& like) {
  if (!grad.defined() || grad.size(1) == like.size(1)) return grad;
  const int64_t repeats = grad.size(1) / like.size(1);
  return sum(grad.reshape({like.size(0), like.size(1), repeats, like.size(2), like.size(3)}), {2});
}

}  // namespace

double attention_scale(const Tensor& query, std::optional<double> scale) {
  return scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(-1))));
}

int64_t heads_per_key(const Tensor& query, const Tensor& key) {
  if (query.dim() < 3 || key.dim() < 3 || key.size(-3) == 0) return 1;
  const int64_t repeats = query.size(-3) / key.size(-3);
  LS_CHECK(repeats * key.size(-3) == query.size(-3), ShapeError,
           "[scaled_dot_product_attention] enable_gqa needs key and value heads that divide the "
           "query's {}, got {}.",
           query.size(-3), key.size(-3));
  return repeats;
}

Tensor repeat_heads(const Tensor& tensor, int64_t repeats) {
  return repeats == 1 ? tensor : repeat_interleave(tensor, repeats, -3);
}

Tensor attention_probabilities(const Tensor& query, const Tensor& key, OptionalTensor attn_mask,
                               bool is_causal, double scale) {
  Tensor scores = matmul(mul(query, scale), transposed(key));
  if (is_causal) {
    const Tensor seen = causal_mask(query.size(-2), key.size(-2), query.device());
    return softmax(masked_fill(scores, logical_not(seen), kHiddenScore), -1);
  }
  if (!attn_mask) return softmax(scores, -1);
  scores = attn_mask->dtype() == DType::kBool
               ? masked_fill(scores, logical_not(*attn_mask), kHiddenScore)
               : add(scores, *attn_mask);
  // Without the first fill fully masked rows would be NaN, and so would their gradients.
  const Tensor blind = all(eq(scores, kHiddenScore), -1, true);
  return masked_fill(softmax(masked_fill(scores, blind, 0), -1), blind, 0);
}

// With P the probabilities, dP = dO V^T and dS = P (dP - sum(P dP)), the backward pass is
// dQ = s dS K, dK = s dS^T Q, dV = P^T dO; this differentiates those three, given the gradients
// a, b, c of dQ, dK, dV.
AttentionGradients attention_second_derivative(const AttentionGradients& of,
                                               const Tensor& given_grad_out,
                                               const Tensor& given_query, const Tensor& given_key,
                                               const Tensor& given_value, OptionalTensor attn_mask,
                                               bool is_causal, std::optional<double> given_scale) {
  const auto wide = [](const Tensor& t) { return t.defined() ? t.to(DType::kF32) : t; };
  const int64_t repeats = heads_per_key(given_query, given_key);
  const auto repeated = [&](const Tensor& t) {
    return t.defined() ? repeat_heads(wide(t), repeats) : t;
  };
  const Tensor grad_out = wide(given_grad_out);
  const Tensor query = wide(given_query);
  const Tensor key = repeated(given_key);
  const Tensor value = repeated(given_value);
  const double scale = attention_scale(query, given_scale);
  const Tensor a = wide(of.query);
  const Tensor b = repeated(of.key);
  const Tensor c = repeated(of.value);

  const Tensor p = attention_probabilities(query, key, attn_mask, is_causal, scale);
  const Tensor dp = matmul(grad_out, transposed(value));
  const Tensor centred = sub(dp, sum(mul(p, dp), {-1}, true));
  const Tensor ds = mul(mul(p, centred), scale);

  AttentionGradients to;
  Tensor to_p;
  if (c.defined()) {
    to_p = matmul(grad_out, transposed(c));
    to.grad_out = matmul(p, c);
  }
  if (b.defined()) to.query = matmul(ds, b);
  if (a.defined()) to.key = matmul(transposed(ds), a);
  if (a.defined() || b.defined()) {
    Tensor to_ds;
    if (a.defined()) to_ds = matmul(a, transposed(key));
    if (b.defined()) to_ds = plus(to_ds, matmul(query, transposed(b)));
    to_ds = mul(to_ds, scale);
    const Tensor mean = sum(mul(p, to_ds), {-1}, true);
    const Tensor to_dp = mul(p, sub(to_ds, mean));
    to_p = plus(to_p, sub(mul(to_ds, centred), mul(dp, mean)));
    to.grad_out = plus(to.grad_out, matmul(to_dp, value));
    to.value = matmul(transposed(to_dp), grad_out);
  }
  if (to_p.defined()) {
    const Tensor to_scores = mul(mul(p, sub(to_p, sum(mul(p, to_p), {-1}, true))), scale);
    to.query = plus(to.query, matmul(to_scores, key));
    to.key = plus(to.key, matmul(transposed(to_scores), query));
  }
  to.key = join_heads(to.key, given_key);
  to.value = join_heads(to.value, given_value);
  return to;
}

}  // namespace lockstep
