#include "core/ops/attention/attention.h"

#include <limits>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/attention/attention_math.h"
#include "core/ops/attention/heads_layout.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/batching_layers.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/view/kept_layout.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
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

/// Spec of a gradient: the strides of `argument`, unless these have gaps (as in a slice of a joint
/// projection of query, key and value).
OutputSpec gradient_of(const Tensor& argument) {
  OutputSpec spec;
  spec.sizes = to_dims(argument.sizes());
  spec.dtype = argument.dtype();
  spec.strides = heads_layout(argument);
  return spec;
}

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

}  // namespace
}  // namespace rules

namespace {

constexpr double kNegativeInfinity = -std::numeric_limits<double>::infinity();

// Named because LS_OP, a macro, would split a type with commas into several arguments.
using TwoTensors = std::tuple<Tensor, Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

std::tuple<Tensor, Tensor> math_body(const Tensor& query, const Tensor& key, const Tensor& value,
                                     OptionalTensor attn_mask, double dropout_p, bool is_causal,
                                     OptionalTensor dropout_mask, std::optional<double> scale,
                                     bool enable_gqa) {
  const Tensor keys = enable_gqa ? repeat_heads(key, heads_per_key(query, key)) : key;
  const Tensor values = enable_gqa ? repeat_heads(value, heads_per_key(query, value)) : value;
  Tensor weights =
      attention_probabilities(query, keys, attn_mask, is_causal, attention_scale(query, scale));
  if (dropout_mask) {
    weights = mul(masked_fill(weights, logical_not(*dropout_mask), 0), 1.0 / (1.0 - dropout_p));
  } else if (dropout_p > 0) {
    weights = dropout(weights, dropout_p, true);
  }
  return {matmul(weights, values), weights};
}

/// Under vmap the batch may require grad although a sample does not report it.
bool may_want_gradient(const Tensor& mask) {
  return mask.requires_grad() || (is_floating(mask.dtype()) && mask.key_set().has(Key::kVmap));
}

/// Whether the fused operator computes this call.
bool is_fused(const Tensor& query, const Tensor& key, const Tensor& value, OptionalTensor attn_mask,
              double dropout_p, bool enable_gqa) {
  const int64_t rank = query.dim();
  if ((rank != 3 && rank != 4) || key.dim() != rank || !same(key.sizes(), value.sizes()))
    return false;
  // The caller has checked that the three have one dtype.
  if (!is_floating(query.dtype()) || query.dtype() == DType::kF64) return false;
  const int64_t heads = query.size(-3);
  const int64_t key_heads = key.size(-3);
  if (key_heads == 0) return false;
  const bool heads_fit = enable_gqa ? heads % key_heads == 0 : heads == key_heads;
  const bool batch_fits = rank == 3 || query.size(0) == key.size(0);
  const bool mask_fits = !attn_mask || (attn_mask->dim() <= rank && !may_want_gradient(*attn_mask));
  return heads_fit && batch_fits && mask_fits && query.size(-1) == key.size(-1) && dropout_p == 0;
}

/// Converts a mask to f32 values added to the scores: for a bool mask 0 where true, else -inf.
Tensor additive(const Tensor& mask) {
  if (mask.dtype() != DType::kBool) return mask.to(DType::kF32);
  return masked_fill(zeros(mask.sizes(), {DType::kF32, mask.device()}), logical_not(mask),
                     kNegativeInfinity);
}

Tensor attention_body(const Tensor& query, const Tensor& key, const Tensor& value,
                      OptionalTensor attn_mask, double dropout_p, bool is_causal,
                      std::optional<double> scale, bool enable_gqa) {
  LS_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, ShapeError,
           "[scaled_dot_product_attention] expected query, key and value of at least 2 dimensions, "
           "got shapes {}, {} and {}.",
           query.shape(), key.shape(), value.shape());
  LS_CHECK(query.dtype() == key.dtype() && query.dtype() == value.dtype(), DTypeError,
           "[scaled_dot_product_attention] expected one dtype, got {}, {} and {}. Cast with "
           "to(dtype).",
           to_string(query.dtype()), to_string(key.dtype()), to_string(value.dtype()));
  LS_CHECK(!(attn_mask && is_causal), ShapeError,
           "[scaled_dot_product_attention] attn_mask and is_causal exclude each other: expected "
           "one. Write the causal part into the mask.");
  LS_CHECK(!attn_mask || is_floating(attn_mask->dtype()) || attn_mask->dtype() == DType::kBool,
           DTypeError,
           "[scaled_dot_product_attention] expected an attn_mask of bool or floating numbers, got "
           "{}. Cast it with to(dtype).",
           to_string(attn_mask->dtype()));
  if (!is_fused(query, key, value, attn_mask, dropout_p, enable_gqa)) {
    return std::get<0>(_scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p,
                                                          is_causal, {}, scale, enable_gqa));
  }
  Tensor mask;
  if (attn_mask) mask = additive(*attn_mask);
  if (query.dim() == 4) {
    return std::get<0>(_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0,
                                                                   is_causal, mask, scale));
  }
  if (mask.defined() && mask.dim() == 3) mask = mask.unsqueeze(0);
  return std::get<0>(_scaled_dot_product_flash_attention_for_cpu(
                         query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), 0.0, is_causal,
                         mask, scale))
      .squeeze(0);
}

Gradients flash_backward_derivative(VjpContext& ctx, std::span<const Tensor> grads) {
  // In f32, as the kernel computes; the engine casts the gradients to the arguments' dtype.
  const AttentionGradients to = attention_second_derivative(
      {{}, grads[0], grads[1], grads[2]}, ctx.saved(0), ctx.saved(1), ctx.saved(2), ctx.saved(3),
      ctx.saved(4), ctx.argument<bool>(7), ctx.argument<std::optional<double>>(9));
  return ctx.gradients([&] { return to.grad_out; }, [&] { return to.query; },
                       [&] { return to.key; }, [&] { return to.value; }, [] { return Tensor(); },
                       [] { return Tensor(); }, [] { return Tensor(); });
}

/// FLOPs of `products` matrix products [rows, width] x [width, keys] per batch and head.
int64_t attention_flops(int64_t products, const Tensor& query, const Tensor& key) {
  return 2 * products * query.numel() * key.size(-2);
}

}  // namespace

LS_OP(
    scaled_dot_product_attention,
    Tensor(const Tensor&, const Tensor&, const Tensor&, OptionalTensor, double, bool,
           std::optional<double>, bool),
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> "
    "Tensor")
    .doc("softmax(query key^T scale + mask) value, per batch and head.")
    .autocast(Autocast::kLowerPrecision)
    .composite(attention_body);
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    OptionalTensor attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  return op_scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale,
                                         enable_gqa);
}

LS_OP(
    _scaled_dot_product_attention_math,
    TwoTensors(const Tensor&, const Tensor&, const Tensor&, OptionalTensor, double, bool,
               OptionalTensor, std::optional<double>, bool),
    "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, "
    "Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, "
    "*, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)")
    .doc("Attention from plain operators: the result and the probabilities.")
    .composite(math_body);
std::tuple<Tensor, Tensor> _scaled_dot_product_attention_math(
    const Tensor& query, const Tensor& key, const Tensor& value, OptionalTensor attn_mask,
    double dropout_p, bool is_causal, OptionalTensor dropout_mask, std::optional<double> scale,
    bool enable_gqa) {
  return op__scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal,
                                               dropout_mask, scale, enable_gqa);
}

LS_OP(flash_attention,
      TwoTensors(const Tensor&, const Tensor&, const Tensor&, double, bool, OptionalTensor,
                 std::optional<double>),
      "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, "
      "float dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> "
      "(Tensor output, Tensor logsumexp)")
    .doc("Attention in one pass that never stores the scores of all rows.")
    .structured(rules::flash_attention)
    .batching(batching::flash_attention)
    .flops([](std::span<const Value> arguments, std::span<const Value>) {
      return attention_flops(2, arguments[0].tensor(), arguments[1].tensor());
    })
    .saves({"query", "key", "value", "output0", "output1", "attn_mask"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      auto [query, key, value] = _scaled_dot_product_flash_attention_for_cpu_backward(
          grad, ctx.saved(0), ctx.saved(1), ctx.saved(2), ctx.saved(3), ctx.saved(4),
          ctx.argument<double>(3), ctx.argument<bool>(4), ctx.saved(5),
          ctx.argument<std::optional<double>>(6));
      return ctx.gradients([&] { return query; }, [&] { return key; }, [&] { return value; },
                           [] { return Tensor(); });
    });
std::tuple<Tensor, Tensor> _scaled_dot_product_flash_attention_for_cpu(
    const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p, bool is_causal,
    OptionalTensor attn_mask, std::optional<double> scale) {
  return op_flash_attention(query, key, value, dropout_p, is_causal, attn_mask, scale);
}

LS_OP(flash_attention_backward,
      ThreeTensors(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                   const Tensor&, double, bool, OptionalTensor, std::optional<double>),
      "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, "
      "Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, "
      "Tensor? attn_mask=None, float? scale=None) -> "
      "(Tensor grad_query, Tensor grad_key, Tensor grad_value)")
    .doc("Gradients of the fused attention's query, key and value.")
    .structured(rules::flash_attention_backward)
    .batching(batching::flash_attention)
    .flops([](std::span<const Value> arguments, std::span<const Value>) {
      return attention_flops(5, arguments[1].tensor(), arguments[2].tensor());
    })
    .saves({"grad_out", "query", "key", "value", "attn_mask"})
    .derivative_of_many(flash_backward_derivative);
std::tuple<Tensor, Tensor, Tensor> _scaled_dot_product_flash_attention_for_cpu_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& out, const Tensor& logsumexp, double dropout_p, bool is_causal,
    OptionalTensor attn_mask, std::optional<double> scale) {
  return op_flash_attention_backward(grad_out, query, key, value, out, logsumexp, dropout_p,
                                     is_causal, attn_mask, scale);
}

}  // namespace lockstep
