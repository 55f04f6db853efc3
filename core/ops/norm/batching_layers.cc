#include "core/ops/norm/batching_layers.h"

#include "core/ops/factory/as_dtype.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/loss/loss.h"
#include "core/ops/norm/norm.h"
#include "core/ops/norm/stream_norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"

namespace lockstep::batching {

namespace {

/// [batch, n, ...] as [batch * n, ...].
Tensor rows_of(const Tensor& front) { return flatten(front, 0, 1); }
/// Inverse of rows_of: [batch * n, ...] -> [batch, n, ...].
Tensor of_rows(const Tensor& rows, int64_t batch) {
  if (!rows.defined()) return rows;
  return unflatten(rows, 0, {batch, batch == 0 ? 0 : rows.size(0) / batch});
}

// --- norms over the last dimensions --------------------------------------------------------------

/// Normalised samples times their weight, plus their bias, where these are present.
Tensor scaled(const BatchedCall& call, Tensor x, size_t weight, size_t bias) {
  const DType dtype = x.dtype();
  const int64_t rank = x.dim() - 1;
  if (call.has_tensor(weight)) x = lockstep::mul(x, call.front(weight, rank));
  if (bias != 0 && call.has_tensor(bias)) x = lockstep::add(x, call.front(bias, rank));
  return as_dtype(x, dtype);
}

// --- losses of class scores ----------------------------------------------------------------------

/// The scores of all samples as rows, and their targets.
struct Scores {
  Tensor rows;    ///< [batch * n, classes]
  Tensor target;  ///< [batch, n]
  Dims sizes;     ///< sizes of the scores with the batch in front
  Dims losses;    ///< sizes of the losses of all rows, with the batch in front

  Scores(const BatchedCall& call, size_t self, size_t target_place) {
    const Tensor whole = call.front(self);
    sizes = to_dims(whole.sizes());
    losses = sizes;
    losses.pop_back();
    const int64_t rows_per_sample = whole.dim() == 2 ? 1 : whole.size(1);
    target = call.front(target_place).reshape({call.batch(), rows_per_sample});
    rows = whole.reshape({call.batch() * rows_per_sample, whole.size(-1)});
  }
  Tensor flat_target() const { return target.reshape({-1}); }
  Tensor per_row(const Tensor& losses_of_rows) const { return losses_of_rows.view(target.sizes()); }
};

/// The weight [batch, n] of each row in a mean.
Tensor weights_of(const Tensor& target, const Tensor& weight, int64_t ignore_index, DType dtype) {
  const Tensor counts = as_dtype(ne(target, ignore_index), dtype);
  if (!weight.defined()) return counts;
  const Tensor chosen = masked_fill(target, eq(target, ignore_index), 0).reshape({-1});
  return counts *
         lockstep::index_select(weight, 0, as_dtype(chosen, DType::kI64)).view(target.sizes());
}

/// Reduces losses [batch, n] per sample; a mean divides by `total` [batch].
Tensor reduced(const Scores& scores, const Tensor& losses, Reduction reduction,
               const Tensor& total) {
  if (reduction == Reduction::kNone) return losses.view(scores.losses);
  const Tensor joined = sum(losses, {1});
  return reduction == Reduction::kMean ? joined / total : joined;
}

/// The gradient [batch * n] of each row's loss, given the gradient of the reduced loss.
Tensor spread(const Scores& scores, const Tensor& grad, Reduction reduction, const Tensor& total) {
  if (reduction == Reduction::kNone) return grad.reshape({-1});
  const Tensor each = reduction == Reduction::kMean ? grad / total : grad;
  return each.unsqueeze(1).expand(scores.target.sizes()).reshape({-1});
}

}  // namespace

void native_layer_norm(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (!call.is_batched(2) && !call.is_batched(3)) return call.forward();
  const Tensor input = call.front(0);
  const IntList shape = call.get<IntList>(1);
  // With parameters of another dtype the statistics are wider; a weight of ones in that dtype makes
  // the kernel use it.
  Tensor unit;
  for (const size_t i : {2, 3}) {
    if (!call.has_tensor(i) || call.tensor(i).dtype() == input.dtype()) continue;
    unit = ones(shape, {call.tensor(i).dtype(), input.device()});
  }
  const auto [out, mean, rstd] = lockstep::native_layer_norm(
      input, shape, unit.defined() ? OptionalTensor(unit) : OptionalTensor(), {},
      call.get<double>(4));
  call.give(scaled(call, out, 2, 3));
  call.give(mean);
  call.give(rstd);
}

void fused_rms_norm(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (!call.is_batched(2)) return call.forward();
  const auto [out, rstd] = lockstep::fused_rms_norm(call.front(0), call.get<IntList>(1), {},
                                                    call.get<std::optional<double>>(3));
  call.give(scaled(call, out, 2, 0));
  call.give(rstd);
}

void stream_norm(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (!call.is_batched(2) && !call.is_batched(3)) return call.forward();
  const Tensor stream = call.front(0);
  const auto [out, mean, rstd] = lockstep::stream_norm(
      stream, call.get<IntList>(1), {}, {}, call.get<double>(4), call.get<bool>(5), std::nullopt);
  const DType dtype = call.get<std::optional<DType>>(6).value_or(stream.dtype());
  call.give(as_dtype(scaled(call, out, 2, 3), dtype));
  call.give(mean);
  call.give(rstd);
}

void stream_sum_norm(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  call.set_front(0);
  call.set_front(1);
  if (!call.is_batched(3) && !call.is_batched(4)) return call.forward();
  const Tensor stream = call.front(0);
  const auto [out, sum, mean, rstd] =
      lockstep::stream_sum_norm(stream, call.front(1), call.get<IntList>(2), {}, {},
                                call.get<double>(5), call.get<bool>(6), std::nullopt);
  const DType dtype = call.get<std::optional<DType>>(7).value_or(stream.dtype());
  call.give(as_dtype(scaled(call, out, 3, 4), dtype));
  call.give(sum);
  call.give(mean);
  call.give(rstd);
}

void stream_norm_backward(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const BoolList wanted = call.get<BoolList>(8);
  // Each sample has gradients of the parameters of its own.
  if (call.is_batched(6) || wanted[2] || wanted[3]) return per_sample(op, batched, stack);
  for (const size_t i : {0, 1, 2, 4, 5}) {
    if (call.has_tensor(i)) call.set_front(i);
  }
  call.forward();
}

void group_norm(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const int64_t batch = call.batch();
  const auto [out, mean, rstd] = lockstep::fused_group_norm(
      rows_of(call.front(0)), {}, {}, batch * call.get<int64_t>(3), call.get<int64_t>(4),
      call.get<int64_t>(5), call.get<int64_t>(6), call.get<double>(7));
  Tensor result = of_rows(out, batch);
  const auto along_channels = [&](size_t i) {  // [batch, 1, channels, 1, ...]
    Dims sizes{call.is_batched(i) ? batch : 1, 1, call.get<int64_t>(4)};
    sizes.resize(static_cast<size_t>(result.dim()), 1);
    return call.tensor(i).view(sizes);
  };
  if (call.has_tensor(1)) result = lockstep::mul(result, along_channels(1));
  if (call.has_tensor(2)) result = lockstep::add(result, along_channels(2));
  call.give(as_dtype(result, out.dtype()));
  call.give(of_rows(mean, batch));
  call.give(of_rows(rstd, batch));
}

void channels(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const int64_t batch = call.batch();
  for (size_t i = 0; i < call.count(); ++i) {
    if (!call.has_tensor(i)) continue;
    const Tensor front = call.front(i);
    // The input and its gradient are [n, channels, ...], other tensors [channels] or empty.
    call.set(i, front.dim() > 2 ? flatten(front.transpose(0, 1), 1, 2) : flatten(front, 0, 1));
  }
  for (Value& value : call.call()) {
    const Tensor result = value.take_tensor();
    if (!result.defined() || result.dim() == 1) {
      call.give(of_rows(result, batch));
    } else {
      const int64_t each = batch == 0 ? 0 : result.size(1) / batch;
      call.give(unflatten(result, 1, {batch, each}).transpose(0, 1));
    }
  }
}

void nll_loss_forward(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (call.is_batched(2)) return per_sample(op, batched, stack);
  const Scores scores(call, 0, 1);
  const Tensor weight = call.tensor_or_undefined(2);
  const auto reduction = static_cast<Reduction>(call.get<int64_t>(3));
  const int64_t ignored = call.get<int64_t>(4);
  const auto [losses, none] = lockstep::nll_loss_forward(scores.rows, scores.flat_target(), weight,
                                                         Reduction::kNone, ignored);
  const Tensor total = reduction == Reduction::kNone
                           ? none.expand({call.batch()})
                           : sum(weights_of(scores.target, weight, ignored, losses.dtype()), {1});
  call.give(reduced(scores, scores.per_row(losses), reduction, total));
  call.give(total);
}

void nll_loss_backward(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (call.is_batched(3)) return per_sample(op, batched, stack);
  const Scores scores(call, 1, 2);
  const auto reduction = static_cast<Reduction>(call.get<int64_t>(4));
  const Tensor total = call.front(6).detach();  // a sum of weights, which are constants
  const Tensor grad = spread(scores, call.front(0), reduction, total);
  const Tensor rows = lockstep::nll_loss_backward(grad, scores.rows, scores.flat_target(),
                                                  call.tensor_or_undefined(3), Reduction::kNone,
                                                  call.get<int64_t>(5), zeros({}, total.options()));
  call.give(rows.view(scores.sizes));
}

void fused_cross_entropy(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const Scores scores(call, 0, 1);
  const auto reduction = static_cast<Reduction>(call.get<int64_t>(2));
  const int64_t ignored = call.get<int64_t>(3);
  const auto [losses, logsumexp] =
      lockstep::fused_cross_entropy(scores.rows, scores.flat_target(), Reduction::kNone, ignored);
  Tensor total;
  if (reduction == Reduction::kMean) {
    total = sum(weights_of(scores.target, {}, ignored, losses.dtype()), {1});
  }
  call.give(reduced(scores, scores.per_row(losses), reduction, total));
  call.give(scores.per_row(logsumexp));
}

void fused_cross_entropy_backward(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const Scores scores(call, 0, 2);
  const auto reduction = static_cast<Reduction>(call.get<int64_t>(4));
  const int64_t ignored = call.get<int64_t>(5);
  const Tensor given = call.front(1);
  Tensor total;
  if (reduction == Reduction::kMean) {
    total = sum(weights_of(scores.target, {}, ignored, given.dtype()), {1});
  }
  const Tensor rows = lockstep::fused_cross_entropy_backward(
      scores.rows, spread(scores, given, reduction, total), scores.flat_target(),
      call.front(3).reshape({-1}), Reduction::kNone, ignored);
  call.give(rows.view(scores.sizes));
}

void flash_attention(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const size_t mask = static_cast<size_t>(op.schema().find("attn_mask"));
  int64_t sequences = 0;
  for (size_t i = 0; i < call.count(); ++i) {
    if (i == mask || !call.has_tensor(i)) continue;
    sequences = call.sample_sizes(i)[0];
    call.set(i, rows_of(call.front(i)));
  }
  const bool own = call.has_tensor(mask) && call.rank(mask) == 4 && call.sample_sizes(mask)[0] > 1;
  if (call.is_batched(mask) || own) {
    const Tensor whole = call.front(mask, 4);  // [batch, sequences or 1, ...]
    Dims sizes = to_dims(whole.sizes());
    sizes[1] = sequences;
    call.set(mask, rows_of(whole.expand(sizes)));
  }
  for (Value& value : call.call()) call.give(of_rows(value.take_tensor(), call.batch()));
}

}  // namespace lockstep::batching
