#include "core/ops/loss/linear_cross_entropy.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/as_dtype.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/scatter.h"
#include "core/ops/loss/loss_rules.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"

namespace lockstep {

int64_t linear_cross_entropy_chunk(int64_t rows, int64_t classes, DeviceType device) {
  // Each chunk reads and writes the weight's gradient once more: on a cpu 128 rows take 9 to 31 %
  // longer than all at once, 256 rows 0 to 13 %, 512 rows the same time. 2^26 logits, 1,335 rows of
  // GPT-2's vocabulary, are 128 MiB of bf16. On an H200 chunks of that size spend 37 % of the time
  // of the weight's product on its gradient, and leave many processors idle at their ends.
  const bool on_gpu = device == DeviceType::kCUDA;
  const int64_t most_logits = int64_t{1} << (on_gpu ? 28 : 26);
  const int64_t row_unit = on_gpu ? 128 : 64;
  constexpr int64_t kLeastRows = 512;
  if (rows <= 1) return 1;
  const int64_t most = std::max(most_logits / std::max<int64_t>(classes, 1), kLeastRows);
  const int64_t chunks = (rows + most - 1) / most;
  const int64_t even = (rows + chunks - 1) / chunks;
  return std::min(rows, (even + row_unit - 1) / row_unit * row_unit);
}

namespace rules {
namespace {

Outputs linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& target,
                             int64_t reduction, int64_t, int64_t chunk_rows, BoolList output_mask) {
  constexpr std::string_view kName = "_linear_cross_entropy";
  LS_CHECK(input.dim() == 2 && weight.dim() == 2 && input.size(1) == weight.size(1), ShapeError,
           "[{}] expected input [rows, in] and weight [classes, in], got shapes {} and {}.", kName,
           input.shape(), weight.shape());
  LS_CHECK(is_floating(input.dtype()) && input.dtype() == weight.dtype(), DTypeError,
           "[{}] expected input and weight of one floating dtype, got {} and {}. Cast one with "
           "to(dtype).",
           kName, to_string(input.dtype()), to_string(weight.dtype()));
  check_class_targets(kName, input.size(0), target);
  check_reduction(kName, reduction);
  LS_CHECK(chunk_rows >= 1, ShapeError, "[{}] expected at least one row in a chunk, got {}.", kName,
           chunk_rows);
  LS_CHECK(output_mask.size() == 2, ShapeError, "[{}] expected two flags in output_mask, got {}.",
           kName, output_mask.size());
  const bool sums = reduction != static_cast<int64_t>(Reduction::kNone);
  LS_CHECK(sums || !(output_mask[0] || output_mask[1]), ShapeError,
           "[{}] the gradients are those of a sum: expected reduction 1 (mean) or 2 (sum) with "
           "output_mask, got 0 (none).",
           kName);
  const DType wide = promote(input.dtype(), DType::kF32);
  const int64_t rows = input.size(0);
  Outputs outputs = one(sums ? Dims{} : Dims{rows}, wide);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    OutputSpec& spec = outputs.specs.emplace_back();
    spec.sizes = to_dims((i == 0 ? input : weight).sizes());
    spec.dtype = wide;
    spec.present = output_mask[i];
  }
  const Dims logits{std::min(chunk_rows, rows), weight.size(0)};
  outputs.workspace_bytes = static_cast<size_t>(count_elements(logits)) * size_of(input.dtype());
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

/// The derivatives from plain operators, over the whole logits L = X W^T. With P = softmax(L), Y
/// the targets' one-hot rows and a factor s for each row, G = s (P - Y) is the gradient of L.
/// In f32, as the kernel computes; the engine casts gradients to the arguments' dtype.
class PlainGradients {
 public:
  PlainGradients(VjpContext& ctx, const Tensor& scales)
      : input_(wide(ctx.saved(0))),
        weight_(wide(ctx.saved(1))),
        scales_(as_dtype(scales, input_.dtype())),
        probabilities_(softmax(mm(input_, weight_.t()), 1)) {
    const int64_t ignore_index = ctx.argument<int64_t>(4);
    const Tensor& target = ctx.saved(2);
    const Tensor classes =
        as_dtype(masked_fill(target, eq(target, ignore_index), 0), DType::kI64).unsqueeze(1);
    const Tensor ones = scatter(zeros_like(probabilities_.detach()), 1, classes, Scalar(1));
    of_logits_ = (probabilities_ - ones) * scales_;
  }

  const Tensor& input() const { return input_; }
  const Tensor& weight() const { return weight_; }
  const Tensor& of_logits() const { return of_logits_; }
  Tensor of_input() const { return mm(of_logits_, weight_); }
  Tensor of_weight() const { return mm(of_logits_.t(), input_); }
  /// The gradient of the logits that comes from `moved` = M in the sum of G M over all elements.
  Tensor through_probabilities(const Tensor& moved) const {
    const Tensor each = probabilities_ * moved;
    return (each - probabilities_ * sum(each, {1}, true)) * scales_;
  }

 private:
  static Tensor wide(const Tensor& tensor) {
    return as_dtype(tensor, promote(tensor.dtype(), DType::kF32));
  }

  Tensor input_;
  Tensor weight_;
  Tensor scales_;
  Tensor probabilities_;
  Tensor of_logits_;
};

/// 1 for each row with a target, else 0: [rows, 1].
Tensor used_rows(VjpContext& ctx) {
  return ne(ctx.saved(2), ctx.argument<int64_t>(4)).unsqueeze(1);
}

/// What the gradients of the sum are multiplied by: the gradient of the loss, for a mean divided by
/// the number of targets.
Tensor factor_of_sum(VjpContext& ctx, const Tensor& grad) {
  if (ctx.argument<int64_t>(3) != static_cast<int64_t>(Reduction::kMean)) return grad;
  return grad / as_dtype(sum(used_rows(ctx)), grad.dtype());
}

/// A gradient of the sum that the forward pass computed, times `factor`: in its own memory where it
/// is not needed again.
Tensor scaled(VjpContext& ctx, size_t place, size_t argument, const Tensor& factor) {
  const Tensor& whole = ctx.saved(place);
  const DType dtype = ctx.input(argument).dtype;
  if (const Tensor destination = ctx.destination(argument);
      destination.defined() && destination.dtype() == whole.dtype()) {
    return mul_out(destination, whole, factor);
  }
  const Tensor own = ctx.take_saved(place);
  return as_dtype(own.defined() ? mul_(own, factor) : whole * factor, dtype);
}

Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

Gradients linear_cross_entropy_derivative(VjpContext& ctx, std::span<const Tensor> grads) {
  Tensor of_input, of_weight;
  if (grads[0].defined()) {
    const bool has_both =
        (!ctx.needs(0) || ctx.saved(3).defined()) && (!ctx.needs(1) || ctx.saved(4).defined());
    const Tensor factor = factor_of_sum(ctx, grads[0]);
    if (has_both) {
      if (ctx.needs(0)) of_input = scaled(ctx, 3, 0, factor);
      if (ctx.needs(1)) of_weight = scaled(ctx, 4, 1, factor);
    } else {
      // [rows] or a single number, against [rows, 1].
      const Tensor each = factor.dim() == 1 ? factor.unsqueeze(1) : factor;
      const PlainGradients plain(ctx, each * as_dtype(used_rows(ctx), each.dtype()));
      if (ctx.needs(0)) of_input = plain.of_input();
      if (ctx.needs(1)) of_weight = plain.of_weight();
    }
  }
  if (grads[1].defined() || grads[2].defined()) {
    // Of the sum of (G W) a + (G^T X) b over all elements, where a and b are the two gradients.
    const PlainGradients plain(ctx, used_rows(ctx));
    const Tensor& a = grads[1];
    const Tensor& b = grads[2];
    Tensor moved;
    if (a.defined()) moved = mm(a, plain.weight().t());
    if (b.defined()) moved = plus(moved, mm(plain.input(), b.t()));
    const Tensor of_logits = plain.through_probabilities(moved);
    if (ctx.needs(0)) {
      of_input = plus(of_input, mm(of_logits, plain.weight()));
      if (b.defined()) of_input = of_input + mm(plain.of_logits(), b);
    }
    if (ctx.needs(1)) {
      of_weight = plus(of_weight, mm(of_logits.t(), plain.input()));
      if (a.defined()) of_weight = of_weight + mm(plain.of_logits().t(), a);
    }
  }
  return ctx.gradients([&] { return of_input; }, [&] { return of_weight; },
                       [] { return Tensor(); });
}

/// Whether a call records a gradient of `tensor`.
bool wants_gradient(const Tensor& tensor) {
  return tensor.requires_grad() && !detail::thread_keys.excluded.has(Key::kAutograd);
}

}  // namespace

LS_OP(fused_linear_cross_entropy,
      ThreeTensors(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, int64_t,
                   BoolList),
      "_linear_cross_entropy(Tensor input, Tensor weight, Tensor target, int reduction, int "
      "ignore_index, int chunk_rows, bool[2] output_mask) -> (Tensor loss, Tensor grad_input, "
      "Tensor grad_weight)")
    .doc(
        "Cross-entropy of linear(input, weight) by chunks of rows, and those gradients of the sum "
        "of "
        "the rows' losses that output_mask selects.")
    .structured(rules::linear_cross_entropy)
    .flops([](std::span<const Value> arguments, std::span<const Value> results) {
      const int64_t product = 2 * arguments[0].tensor().numel() * arguments[1].tensor().size(0);
      const auto computed = [&](size_t i) { return results[i].is_none() ? 0 : 1; };
      return product * (1 + computed(1) + computed(2));
    })
    .saves({"input", "weight", "target", "output1", "output2"})
    .derivative_of_many(linear_cross_entropy_derivative);

LS_OP(linear_cross_entropy, Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t),
      "linear_cross_entropy(Tensor input, Tensor weight, Tensor target, int reduction=1, int "
      "ignore_index=-100) -> Tensor")
    .doc("Cross-entropy of the logits linear(input, weight), which are never stored as a whole.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& input, const Tensor& weight, const Tensor& target,
                  int64_t reduction, int64_t ignore_index) {
      LS_CHECK(input.dim() >= 1 && weight.dim() == 2 && input.size(-1) == weight.size(1),
               ShapeError,
               "[linear_cross_entropy] expected input [..., in] and weight [classes, in], got "
               "shapes {} and {}.",
               input.shape(), weight.shape());
      LS_CHECK(same(target.sizes(), input.sizes().first(static_cast<size_t>(input.dim() - 1))),
               ShapeError,
               "[linear_cross_entropy] expected a target for each row of an input of shape {}, got "
               "targets of shape {}.",
               input.shape(), target.shape());
      const bool sums = reduction != static_cast<int64_t>(Reduction::kNone);
      const BoolList mask{sums && wants_gradient(input), sums && wants_gradient(weight)};
      const Tensor rows = input.dim() == 2 ? input : input.reshape({-1, input.size(-1)});
      const Tensor targets = target.dim() == 1 ? target : target.reshape({-1});
      const Tensor loss = std::get<0>(op_fused_linear_cross_entropy(
          rows, weight, targets, reduction, ignore_index,
          linear_cross_entropy_chunk(rows.size(0), weight.size(0), input.device().type), mask));
      return sums ? loss : loss.reshape(target.sizes());
    });
Tensor linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& target,
                            Reduction reduction, int64_t ignore_index) {
  return op_linear_cross_entropy(input, weight, target, static_cast<int64_t>(reduction),
                                 ignore_index);
}

std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy_by_chunks(
    const Tensor& input, const Tensor& weight, const Tensor& target, Reduction reduction,
    int64_t ignore_index, int64_t chunk_rows, BoolList output_mask) {
  return op_fused_linear_cross_entropy(input, weight, target, static_cast<int64_t>(reduction),
                                       ignore_index, chunk_rows, output_mask);
}

Tensor linear_cross_entropy_reference(const Tensor& input, const Tensor& weight,
                                      const Tensor& target, Reduction reduction,
                                      int64_t ignore_index) {
  const Tensor logits = linear(input, weight);
  const Tensor wide = as_dtype(logits, promote(logits.dtype(), DType::kF32));
  const Tensor loss = cross_entropy_loss_reference(
      wide.reshape({-1, wide.size(-1)}), target.reshape({-1}), {}, reduction, ignore_index);
  return reduction == Reduction::kNone ? loss.reshape(target.sizes()) : loss;
}

}  // namespace lockstep
