#include "core/ops/attention/attention_of_qkv.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/attention/attention.h"
#include "core/ops/attention/attention_math.h"
#include "core/ops/batching.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace {

/// Elements of a head. Throws ShapeError where `qkv` does not hold such heads.
int64_t head_width(std::string_view op, const Tensor& qkv, int64_t heads, int64_t key_heads) {
  LS_CHECK(qkv.dim() == 3, ShapeError, "[{}] expected a qkv of 3 dimensions, got shape {}.", op,
           qkv.shape());
  const int64_t all = qkv.size(2);
  LS_CHECK(1 <= key_heads && key_heads <= heads && heads <= all && heads % key_heads == 0,
           ShapeError,
           "[{}] expected heads >= 1 and key_heads that divide them, for rows of {} elements, got "
           "{} and {}.",
           op, all, heads, key_heads);
  const int64_t parts = heads + 2 * key_heads;
  LS_CHECK(all % parts == 0, ShapeError,
           "[{}] expected rows of {} heads of one width (heads + 2 key_heads), got {} elements.",
           op, parts, all);
  return all / parts;
}

}  // namespace

namespace rules {
namespace {

void check_dtype(std::string_view op, const Tensor& qkv) {
  const bool takes =
      qkv.dtype() == DType::kF32 || qkv.dtype() == DType::kBF16 || qkv.dtype() == DType::kF16;
  LS_CHECK(
      takes, DTypeError,
      "[{}] expected float32, bfloat16 or float16, got {}. attention_of_qkv takes float64 too.", op,
      to_string(qkv.dtype()));
}

Outputs flash_attention_of_qkv(const Tensor& qkv, int64_t heads, int64_t key_heads, bool,
                               std::optional<double>) {
  constexpr std::string_view kOp = "_flash_attention_of_qkv";
  const int64_t width = head_width(kOp, qkv, heads, key_heads);
  check_dtype(kOp, qkv);
  Outputs outputs = one({qkv.size(0), qkv.size(1), heads * width}, qkv.dtype());
  outputs.specs.emplace_back().sizes = {qkv.size(0), heads, qkv.size(1)};
  return outputs;
}

Outputs flash_attention_of_qkv_backward(const Tensor& grad_out, const Tensor& qkv,
                                        const Tensor& out, const Tensor& logsumexp, int64_t heads,
                                        int64_t key_heads, bool, std::optional<double>) {
  constexpr std::string_view kOp = "_flash_attention_of_qkv_backward";
  const int64_t width = head_width(kOp, qkv, heads, key_heads);
  check_dtype(kOp, qkv);
  const Dims result{qkv.size(0), qkv.size(1), heads * width};
  const Dims rows{qkv.size(0), heads, qkv.size(1)};
  LS_CHECK(
      same(grad_out.sizes(), result) && same(out.sizes(), result) && same(logsumexp.sizes(), rows),
      ShapeError,
      "[{}] expected grad_out and out of shape {} and a logsumexp of {}, got {}, {} and {}.", kOp,
      to_string(result), to_string(rows), grad_out.shape(), out.shape(), logsumexp.shape());
  LS_CHECK(grad_out.dtype() == qkv.dtype() && out.dtype() == qkv.dtype() &&
               logsumexp.dtype() == DType::kF32,
           DTypeError,
           "[{}] expected grad_out and out of dtype {} and a float32 logsumexp, got {}, {} and {}.",
           kOp, to_string(qkv.dtype()), to_string(grad_out.dtype()), to_string(out.dtype()),
           to_string(logsumexp.dtype()));
  return one(to_dims(qkv.sizes()), qkv.dtype());
}

}  // namespace
}  // namespace rules

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;

/// [B, T, heads D] as [B, heads, T, D].
Tensor heads_first(const Tensor& rows, int64_t heads) {
  return unflatten(rows, 2, {heads, rows.size(2) / heads}).transpose(1, 2);
}
/// [B, heads, T, D] as [B, T, heads D].
Tensor rows_first(const Tensor& heads) { return heads.transpose(1, 2).flatten(2); }

struct QkvHeads {
  Tensor query, key, value;
};
QkvHeads parts_of(const Tensor& qkv, int64_t heads, int64_t key_heads) {
  const int64_t width = head_width("attention_of_qkv", qkv, heads, key_heads);
  const std::vector<Tensor> parts =
      split_with_sizes(qkv, {heads * width, key_heads * width, key_heads * width}, 2);
  return {heads_first(parts[0], heads), heads_first(parts[1], key_heads),
          heads_first(parts[2], key_heads)};
}

/// The batch is folded into the batch dimension of the sequences.
void fold_batch(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  for (size_t i = 0; i < call.count(); ++i) {
    if (call.has_tensor(i)) call.set(i, call.front(i).flatten(0, 1));
  }
  for (Value& value : call.call()) {
    const Tensor rows = value.take_tensor();
    const int64_t each = call.batch() == 0 ? 0 : rows.size(0) / call.batch();
    call.give(unflatten(rows, 0, {call.batch(), each}));
  }
}

/// FLOPs of `products` matrix products [T, D] x [D, T] per head.
int64_t flops_of(int64_t products, const Tensor& qkv, int64_t heads, int64_t key_heads) {
  return 2 * products * qkv.numel() / (heads + 2 * key_heads) * heads * qkv.size(1);
}

Gradients backward_derivative(VjpContext& ctx, const Tensor& grad) {
  const int64_t heads = ctx.argument<int64_t>(4);
  const int64_t key_heads = ctx.argument<int64_t>(5);
  const QkvHeads of = parts_of(grad, heads, key_heads);
  const QkvHeads at = parts_of(ctx.saved(1), heads, key_heads);
  const AttentionGradients to = attention_second_derivative(
      {{}, of.query, of.key, of.value}, heads_first(ctx.saved(0), heads), at.query, at.key,
      at.value, {}, ctx.argument<bool>(6), ctx.argument<std::optional<double>>(7));
  return ctx.gradients(
      [&] { return rows_first(to.grad_out); },
      [&] {
        return cat({rows_first(to.query), rows_first(to.key), rows_first(to.value)}, 2);
      },
      [] { return Tensor(); }, [] { return Tensor(); });
}

}  // namespace

LS_OP(attention_of_qkv, Tensor(const Tensor&, int64_t, int64_t, bool, std::optional<double>),
      "attention_of_qkv(Tensor qkv, int heads, int key_heads, bool is_causal=False, *, float? "
      "scale=None) -> Tensor")
    .doc("Attention of the query, key and value heads in each row of a joint projection.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& qkv, int64_t heads, int64_t key_heads, bool is_causal,
                  std::optional<double> scale) {
      return qkv.dtype() == DType::kF64
                 ? attention_of_qkv_reference(qkv, heads, key_heads, is_causal, scale)
                 : std::get<0>(_flash_attention_of_qkv(qkv, heads, key_heads, is_causal, scale));
    });
Tensor attention_of_qkv(const Tensor& qkv, int64_t heads, int64_t key_heads, bool is_causal,
                        std::optional<double> scale) {
  return op_attention_of_qkv(qkv, heads, key_heads, is_causal, scale);
}

LS_OP(flash_attention_of_qkv,
      TwoTensors(const Tensor&, int64_t, int64_t, bool, std::optional<double>),
      "_flash_attention_of_qkv(Tensor qkv, int heads, int key_heads, bool is_causal=False, *, "
      "float? scale=None) -> (Tensor output, Tensor logsumexp)")
    .doc("attention_of_qkv in one pass that never stores the scores of all rows.")
    .structured(rules::flash_attention_of_qkv)
    .batching(fold_batch)
    .flops([](std::span<const Value> arguments, std::span<const Value>) {
      return flops_of(2, arguments[0].tensor(), arguments[1].to_int(), arguments[2].to_int());
    })
    .saves({"qkv", "output0", "output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return _flash_attention_of_qkv_backward(grad, ctx.saved(0), ctx.saved(1), ctx.saved(2),
                                                ctx.argument<int64_t>(1), ctx.argument<int64_t>(2),
                                                ctx.argument<bool>(3),
                                                ctx.argument<std::optional<double>>(4));
      });
    });
std::tuple<Tensor, Tensor> _flash_attention_of_qkv(const Tensor& qkv, int64_t heads,
                                                   int64_t key_heads, bool is_causal,
                                                   std::optional<double> scale) {
  return op_flash_attention_of_qkv(qkv, heads, key_heads, is_causal, scale);
}

LS_OP(flash_attention_of_qkv_backward,
      Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, bool,
             std::optional<double>),
      "_flash_attention_of_qkv_backward(Tensor grad_out, Tensor qkv, Tensor out, Tensor logsumexp, "
      "int heads, int key_heads, bool is_causal, *, float? scale=None) -> Tensor")
    .doc("The gradient of the fused attention's joint projection.")
    .structured(rules::flash_attention_of_qkv_backward)
    .batching(fold_batch)
    .flops([](std::span<const Value> arguments, std::span<const Value>) {
      return flops_of(5, arguments[1].tensor(), arguments[4].to_int(), arguments[5].to_int());
    })
    .saves({"grad_out", "qkv"})
    .derivative(backward_derivative);
Tensor _flash_attention_of_qkv_backward(const Tensor& grad_out, const Tensor& qkv,
                                        const Tensor& out, const Tensor& logsumexp, int64_t heads,
                                        int64_t key_heads, bool is_causal,
                                        std::optional<double> scale) {
  return op_flash_attention_of_qkv_backward(grad_out, qkv, out, logsumexp, heads, key_heads,
                                            is_causal, scale);
}

Tensor attention_of_qkv_reference(const Tensor& qkv, int64_t heads, int64_t key_heads,
                                  bool is_causal, std::optional<double> scale) {
  const QkvHeads at = parts_of(qkv, heads, key_heads);
  return rows_first(scaled_dot_product_attention(at.query, at.key, at.value, {}, 0.0, is_causal,
                                                 scale, heads != key_heads));
}

}  // namespace lockstep
