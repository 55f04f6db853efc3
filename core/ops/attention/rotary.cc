#include "core/ops/attention/rotary.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/attention/heads_layout.h"
#include "core/ops/batching.h"
#include "core/ops/factory/as_dtype.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
namespace {

constexpr std::string_view kOp = "rotary_embedding";

void check_table(std::string_view op, std::string_view name, const Tensor& table,
                 const Tensor& input, int64_t positions, int64_t width) {
  const bool fits = table.dim() == 2 && table.size(0) == positions && table.size(1) == width / 2;
  LS_CHECK(fits, ShapeError,
           "[{}] {} does not fit the input's positions and pairs: expected [{}, {}], got {}.", op,
           name, positions, width / 2, table.shape());
  const DType wanted = input.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  LS_CHECK(table.dtype() == wanted, DTypeError,
           "[{}] expected {} to be {} beside an input of {}, got {}. Cast it with to(dtype).", op,
           name, to_string(wanted), to_string(input.dtype()), to_string(table.dtype()));
}

Outputs rotary_embedding(const Tensor& input, const Tensor& cosine, const Tensor& sine, bool) {
  LS_CHECK(is_floating(input.dtype()), DTypeError, "[{}] expected a floating input, got {}.", kOp,
           to_string(input.dtype()));
  LS_CHECK(input.dim() >= 2 && input.dim() <= 4, ShapeError,
           "[{}] expected an input [..., T, D] of 2 to 4 dimensions, got shape {}.", kOp,
           input.shape());
  LS_CHECK(input.size(-1) % 2 == 0, ShapeError,
           "[{}] expected heads of an even width, whose elements are pairs, got shape {}.", kOp,
           input.shape());
  check_table(kOp, "cosine", cosine, input, input.size(-2), input.size(-1));
  check_table(kOp, "sine", sine, input, input.size(-2), input.size(-1));
  Outputs outputs = one(to_dims(input.sizes()), input.dtype());
  outputs.specs[0].strides = heads_layout(input);
  return outputs;
}

Outputs rotary_of_qkv(const Tensor& qkv, const Tensor& cosine, const Tensor& sine, int64_t heads,
                      int64_t key_heads, bool) {
  constexpr std::string_view kName = "rotary_of_qkv";
  LS_CHECK(is_floating(qkv.dtype()), DTypeError, "[{}] expected a floating qkv, got {}.", kName,
           to_string(qkv.dtype()));
  // Compared with the last size first, so that their sum cannot overflow.
  const int64_t most = qkv.dim() == 3 ? qkv.size(2) : 0;
  const bool fits = heads >= 1 && key_heads >= 1 && heads <= most && key_heads <= most;
  const int64_t all = fits ? heads + 2 * key_heads : 1;
  LS_CHECK(fits && most % (2 * all) == 0, ShapeError,
           "[{}] expected [batch, positions, ({} + 2 * {}) * D] with an even D, got shape {}.",
           kName, heads, key_heads, qkv.shape());
  const int64_t width = most / all;
  check_table(kName, "cosine", cosine, qkv, qkv.size(1), width);
  check_table(kName, "sine", sine, qkv, qkv.size(1), width);
  return one(to_dims(qkv.sizes()), qkv.dtype());
}

}  // namespace
}  // namespace rules

namespace {

/// A sample has the shapes of a call, so the batch becomes one more leading dimension of the input,
/// or joins the first where there would be five.
void batch_rotary_embedding(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const Tensor input = call.front(0);
  if (call.is_batched(1) || call.is_batched(2)) {
    const auto table = [&](size_t i) {
      Tensor each = call.front(i);
      while (each.dim() < input.dim()) each = each.unsqueeze(1);
      return each;
    };
    call.give(rotary_embedding_reference(input, table(1), table(2), call.get<bool>(3)));
    return;
  }
  call.set(0, input.dim() <= 4 ? input : input.flatten(0, 1));
  for (Value& value : call.call()) call.give(value.take_tensor().reshape(input.sizes()));
}

/// The halves of the last dimension: the first and second elements of all pairs.
struct Pairs {
  explicit Pairs(const Tensor& heads)
      : first(heads.slice(-1, 0, heads.size(-1) / 2)),
        second(heads.slice(-1, heads.size(-1) / 2)) {}
  Tensor first;
  Tensor second;
};

/// The gradient of the table `which` (1: cosine, 2: sine), given that of the result and the input,
/// both [..., T, D].
Tensor table_gradient(const VjpContext& ctx, size_t which, const Tensor& grad, const Tensor& input,
                      bool inverse) {
  const Pairs g(grad), x(input);
  const Tensor terms = which == 1 ? g.first * x.first + g.second * x.second
                       : !inverse ? g.second * x.first - g.first * x.second
                                  : g.first * x.second - g.second * x.first;
  return as_dtype(sum_to_size(terms, ctx.sizes(which)), ctx.input(which).dtype);
}

/// The query and key heads of a joint projection, [B, heads + key_heads, T, D].
Tensor turned_heads(const Tensor& qkv, int64_t heads, int64_t key_heads) {
  const int64_t width = qkv.size(2) / (heads + 2 * key_heads);
  const int64_t turned = heads + key_heads;
  return unflatten(qkv.slice(2, 0, turned * width), 2, {turned, width}).transpose(1, 2);
}

void batch_rotary_of_qkv(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const Tensor qkv = call.front(0);
  const Tensor sequences = qkv.flatten(0, 1);
  if (call.is_batched(1) || call.is_batched(2)) {
    const Tensor heads = turned_heads(sequences, call.get<int64_t>(3), call.get<int64_t>(4));
    const auto table = [&](size_t i) { return call.front(i).unsqueeze(1).unsqueeze(1); };
    const Tensor turned = rotary_embedding_reference(
        unflatten(heads, 0, {qkv.size(0), qkv.size(1)}), table(1), table(2), call.get<bool>(5));
    const Tensor rows = turned.transpose(2, 3).flatten(3);
    return call.give(cat({rows, qkv.slice(3, rows.size(3))}, 3));
  }
  call.set(0, sequences);
  for (Value& value : call.call()) call.give(value.take_tensor().view(qkv.sizes()));
}

}  // namespace

LS_OP(rotary_embedding, Tensor(const Tensor&, const Tensor&, const Tensor&, bool),
      "rotary_embedding(Tensor input, Tensor cosine, Tensor sine, bool inverse=False) -> Tensor")
    .doc("Turns each pair (x[i], x[i + D/2]) of the last dimension by its position's angle.")
    .structured(rules::rotary_embedding)
    .batching(batch_rotary_embedding)
    .in_place()
    .out()
    .saves({"input for cosine, sine", "cosine for input", "sine for input"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const bool inverse = ctx.argument<bool>(3);
      // A turn is orthogonal up to the tables' factor: its transpose is the turn back.
      return ctx.gradients(
          [&] { return rotary_embedding(grad, ctx.saved(1), ctx.saved(2), !inverse); },
          [&] { return table_gradient(ctx, 1, grad, ctx.saved(0), inverse); },
          [&] { return table_gradient(ctx, 2, grad, ctx.saved(0), inverse); });
    });
Tensor rotary_embedding(const Tensor& input, const Tensor& cosine, const Tensor& sine,
                        bool inverse) {
  return op_rotary_embedding(input, cosine, sine, inverse);
}
const Tensor& rotary_embedding_(const Tensor& input, const Tensor& cosine, const Tensor& sine,
                                bool inverse) {
  return op_rotary_embedding.in_place(input, cosine, sine, inverse);
}

LS_OP(rotary_of_qkv, Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, bool),
      "rotary_of_qkv(Tensor qkv, Tensor cosine, Tensor sine, int heads, int key_heads, bool "
      "inverse=False) -> Tensor")
    .doc("rotary_embedding of the query and key heads in each row of a joint projection.")
    .structured(rules::rotary_of_qkv)
    .batching(batch_rotary_of_qkv)
    .saves({"qkv for cosine, sine", "cosine for qkv", "sine for qkv"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const int64_t heads = ctx.argument<int64_t>(3);
      const int64_t key_heads = ctx.argument<int64_t>(4);
      const bool inverse = ctx.argument<bool>(5);
      const auto of_table = [&](size_t which) {
        return table_gradient(ctx, which, turned_heads(grad, heads, key_heads),
                              turned_heads(ctx.saved(0), heads, key_heads), inverse);
      };
      return ctx.gradients(
          [&] {
            return rotary_of_qkv(grad, ctx.saved(1), ctx.saved(2), heads, key_heads, !inverse);
          },
          [&] { return of_table(1); }, [&] { return of_table(2); });
    });
Tensor rotary_of_qkv(const Tensor& qkv, const Tensor& cosine, const Tensor& sine, int64_t heads,
                     int64_t key_heads, bool inverse) {
  return op_rotary_of_qkv(qkv, cosine, sine, heads, key_heads, inverse);
}

Tensor rotary_of_qkv_reference(const Tensor& qkv, const Tensor& cosine, const Tensor& sine,
                               int64_t heads, int64_t key_heads, bool inverse) {
  const Tensor turned =
      rotary_embedding(turned_heads(qkv, heads, key_heads), cosine, sine, inverse);
  const Tensor rows = turned.transpose(1, 2).flatten(2);
  return cat({rows, qkv.slice(2, rows.size(2))}, 2);
}

Tensor rotary_embedding_reference(const Tensor& input, const Tensor& cosine, const Tensor& sine,
                                  bool inverse) {
  const Pairs x(as_dtype(input, cosine.dtype()));
  const Tensor s = inverse ? neg(sine) : sine;
  const Tensor turned = cat({x.first * cosine - x.second * s, x.second * cosine + x.first * s}, -1);
  return as_dtype(turned, input.dtype());
}

}  // namespace lockstep
