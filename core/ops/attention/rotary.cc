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

void check_table(std::string_view name, const Tensor& table, const Tensor& input) {
  const bool fits =
      table.dim() == 2 && table.size(0) == input.size(-2) && table.size(1) == input.size(-1) / 2;
  LS_CHECK(fits, ShapeError,
           "[{}] {} does not fit the input's positions and pairs: expected [{}, {}], got {}.", kOp,
           name, input.size(-2), input.size(-1) / 2, table.shape());
  const DType wanted = input.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  LS_CHECK(table.dtype() == wanted, DTypeError,
           "[{}] expected {} to be {} beside an input of {}, got {}. Cast it with to(dtype).", kOp,
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
  check_table("cosine", cosine, input);
  check_table("sine", sine, input);
  Outputs outputs = one(to_dims(input.sizes()), input.dtype());
  outputs.specs[0].strides = heads_layout(input);
  return outputs;
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
      const auto of_table = [&](size_t i, const Tensor& terms) {
        return as_dtype(sum_to_size(terms, ctx.sizes(i)), ctx.input(i).dtype);
      };
      return ctx.gradients(
          [&] { return rotary_embedding(grad, ctx.saved(1), ctx.saved(2), !inverse); },
          [&] {
            const Pairs g(grad), x(ctx.saved(0));
            return of_table(1, g.first * x.first + g.second * x.second);
          },
          [&] {
            const Pairs g(grad), x(ctx.saved(0));
            const Tensor terms = g.second * x.first - g.first * x.second;
            return of_table(2, inverse ? neg(terms) : terms);
          });
    });
Tensor rotary_embedding(const Tensor& input, const Tensor& cosine, const Tensor& sine,
                        bool inverse) {
  return op_rotary_embedding(input, cosine, sine, inverse);
}
const Tensor& rotary_embedding_(const Tensor& input, const Tensor& cosine, const Tensor& sine,
                                bool inverse) {
  return op_rotary_embedding.in_place(input, cosine, sine, inverse);
}

Tensor rotary_embedding_reference(const Tensor& input, const Tensor& cosine, const Tensor& sine,
                                  bool inverse) {
  const Pairs x(as_dtype(input, cosine.dtype()));
  const Tensor s = inverse ? neg(sine) : sine;
  const Tensor turned = cat({x.first * cosine - x.second * s, x.second * cosine + x.first * s}, -1);
  return as_dtype(turned, input.dtype());
}

}  // namespace lockstep
