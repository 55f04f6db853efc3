#include "core/ops/attention/attention_rules.h"

#include "core/base/check.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep::rules {

namespace {

void check_arguments(const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p,
                     bool is_causal, OptionalTensor attn_mask) {
  constexpr std::string_view kOp = "_scaled_dot_product_flash_attention_for_cpu";
  LS_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, ShapeError,
           "[{}] expected query, key and value of 4 dimensions, got shapes {}, {} and {}.", kOp,
           query.shape(), key.shape(), value.shape());
  const bool fits = key.size(0) == query.size(0) && same(key.sizes(), value.sizes()) &&
                    key.size(3) == query.size(3) && key.size(1) > 0 &&
                    query.size(1) % key.size(1) == 0;
  LS_CHECK(
      fits, ShapeError,
      "[{}] shapes do not fit: expected [B, H, T, D] and twice [B, heads dividing H, S, D], got "
      "{}, {} and {}. scaled_dot_product_attention takes more.",
      kOp, query.shape(), key.shape(), value.shape());
  const bool takes =
      query.dtype() == DType::kF32 || query.dtype() == DType::kBF16 || query.dtype() == DType::kF16;
  LS_CHECK(takes && key.dtype() == query.dtype() && value.dtype() == query.dtype(), DTypeError,
           "[{}] expected three tensors of float32, bfloat16 or float16, got {}, {} and {}. "
           "scaled_dot_product_attention takes float64 too.",
           kOp, to_string(query.dtype()), to_string(key.dtype()), to_string(value.dtype()));
  LS_CHECK(dropout_p == 0.0, ShapeError,
           "[{}] dropout_p must be 0, got {}. scaled_dot_product_attention takes dropout.", kOp,
           dropout_p);
  if (!attn_mask) return;
  LS_CHECK(!is_causal, ShapeError,
           "[{}] attn_mask and is_causal exclude each other: expected one. Write the causal part "
           "into the mask.",
           kOp);
  LS_CHECK(attn_mask->dtype() == DType::kF32, DTypeError,
           "[{}] expected a float32 attn_mask, got {}. scaled_dot_product_attention takes bool.",
           kOp, to_string(attn_mask->dtype()));
  const Dims scores{query.size(0), query.size(1), query.size(2), key.size(2)};
  LS_CHECK(attn_mask->dim() <= 4 && same(broadcast(kOp, attn_mask->sizes(), scores), scores),
           ShapeError, "[{}] attn_mask does not stretch to the scores: expected {}, got {}.", kOp,
           to_string(scores), attn_mask->shape());
}

/// Strides of [B, H, T, D] stored as [B, T, H, D], so that transpose(1, 2) is row-major.
Dims heads_inside(IntList sizes) {
  return {sizes[1] * sizes[2] * sizes[3], sizes[3], sizes[1] * sizes[3], 1};
}

/// Spec of a gradient: the strides of `argument`, unless these have gaps (as in a slice of a joint
/// projection of query, key and value).
OutputSpec gradient_of(const Tensor& argument) {
  OutputSpec spec;
  spec.sizes = to_dims(argument.sizes());
  spec.dtype = argument.dtype();
  const bool keeps = is_dense(argument.sizes(), argument.strides()) && argument.stride(-1) == 1;
  spec.strides = keeps ? to_dims(argument.strides()) : heads_inside(argument.sizes());
  return spec;
}

}  // namespace

Outputs flash_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                        double dropout_p, bool is_causal, OptionalTensor attn_mask,
                        std::optional<double>) {
  check_arguments(query, key, value, dropout_p, is_causal, attn_mask);
  Outputs outputs = one(to_dims(query.sizes()), query.dtype());
  if (query.stride(-1) == 1) keep_layout(outputs.specs[0], query);
  OutputSpec& logsumexp = outputs.specs.emplace_back();
  logsumexp.sizes = {query.size(0), query.size(1), query.size(2)};
  return outputs;
}

Outputs flash_attention_backward(const Tensor& grad_out, const Tensor& query, const Tensor& key,
                                 const Tensor& value, const Tensor& out, const Tensor& logsumexp,
                                 double dropout_p, bool is_causal, OptionalTensor attn_mask,
                                 std::optional<double>) {
  check_arguments(query, key, value, dropout_p, is_causal, attn_mask);
  const bool fits = same(grad_out.sizes(), query.sizes()) && same(out.sizes(), query.sizes()) &&
                    logsumexp.dim() == 3 && same(logsumexp.sizes(), query.sizes().first(3));
  LS_CHECK(fits, ShapeError,
           "[_scaled_dot_product_flash_attention_for_cpu_backward] expected grad_out and out of "
           "shape {} and logsumexp without the last dimension, got {}, {} and {}.",
           query.shape(), grad_out.shape(), out.shape(), logsumexp.shape());
  const bool dtypes_fit = grad_out.dtype() == query.dtype() && out.dtype() == query.dtype() &&
                          logsumexp.dtype() == DType::kF32;
  LS_CHECK(dtypes_fit, DTypeError,
           "[_scaled_dot_product_flash_attention_for_cpu_backward] expected grad_out and out of "
           "dtype {} and a float32 logsumexp, got {}, {} and {}.",
           to_string(query.dtype()), to_string(grad_out.dtype()), to_string(out.dtype()),
           to_string(logsumexp.dtype()));
  Outputs outputs;
  for (const Tensor* tensor : {&query, &key, &value}) {
    outputs.specs.push_back(gradient_of(*tensor));
  }
  return outputs;
}

}  // namespace lockstep::rules
