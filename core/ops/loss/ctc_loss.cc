#include "core/ops/loss/ctc_loss.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/loss/reduced_losses.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/rule_outputs.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {
namespace {

void check_lengths(const char* name, IntList lengths, int64_t batch, int64_t most) {
  LS_CHECK(static_cast<int64_t>(lengths.size()) == batch, ShapeError,
           "[ctc_loss] expected {} {}, got {}.", batch, name, lengths.size());
  for (const int64_t length : lengths) {
    LS_CHECK(length >= 0 && length <= most, ShapeError,
             "[ctc_loss] expected {} in [0, {}], got {}.", name, most, length);
  }
}

void check_problem(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                   IntList target_lengths, int64_t blank) {
  LS_CHECK(log_probs.dim() == 3, ShapeError,
           "[ctc_loss] expected log_probs [steps, batch, classes], got shape {}.",
           log_probs.shape());
  LS_CHECK(is_floating(log_probs.dtype()), DTypeError,
           "[ctc_loss] expected log_probs of a floating dtype, got {}.", to_string(log_probs));
  LS_CHECK(targets.dtype() == DType::kI64 || targets.dtype() == DType::kI32, DTypeError,
           "[ctc_loss] expected targets of int64 or int32, got {}.", to_string(targets));
  const int64_t batch = log_probs.size(1), classes = log_probs.size(2);
  LS_CHECK(blank >= 0 && blank < classes, IndexError,
           "[ctc_loss] blank is no class: expected a number in [0, {}), got {}.", classes, blank);
  LS_CHECK(targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == batch), ShapeError,
           "[ctc_loss] expected targets [{}, longest] or in one dimension, got shape {}.", batch,
           targets.shape());
  const int64_t longest = targets.size(-1);
  check_lengths("input_lengths", input_lengths, batch, log_probs.size(0));
  check_lengths("target_lengths", target_lengths, batch, longest);
  if (targets.dim() == 2) return;
  int64_t total = 0;
  for (const int64_t length : target_lengths) {
    total += length;
    LS_CHECK(total <= longest, ShapeError,
             "[ctc_loss] target_lengths exceed the targets: expected a sum of {}.", longest);
  }
  LS_CHECK(total == longest, ShapeError,
           "[ctc_loss] expected target_lengths with a sum of {}, got {}.", longest, total);
}

Outputs ctc_loss(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                 IntList target_lengths, int64_t blank, bool) {
  check_problem(log_probs, targets, input_lengths, target_lengths, blank);
  const int64_t batch = log_probs.size(1);
  const auto longest = std::max_element(target_lengths.begin(), target_lengths.end());
  const int64_t places = longest == target_lengths.end() ? 1 : 2 * *longest + 1;
  Outputs outputs;
  add_output(outputs, Dims{batch}, log_probs.dtype());
  add_output(outputs, Dims{batch, log_probs.size(0), places}, log_probs.dtype());
  return outputs;
}

Outputs ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                          IntList input_lengths, IntList target_lengths,
                          const Tensor& neg_log_likelihood, const Tensor&, int64_t blank, bool) {
  check_problem(log_probs, targets, input_lengths, target_lengths, blank);
  for (const Tensor* each : {&grad, &neg_log_likelihood}) {
    LS_CHECK(each->dim() == 1 && each->size(0) == log_probs.size(1), ShapeError,
             "[_ctc_loss_backward] expected a number for each of {} sequences, got shape {}.",
             log_probs.size(1), each->shape());
    LS_CHECK(each->dtype() == log_probs.dtype(), DTypeError,
             "[_ctc_loss_backward] expected one dtype, got {} and {}.", to_string(log_probs),
             to_string(*each));
  }
  return one(log_probs.sizes(), log_probs.dtype());
}

}  // namespace
}  // namespace rules

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;

/// Lengths that are elements of a tensor.
Dims lengths_of(const char* name, const Tensor& lengths) {
  LS_CHECK(lengths.dim() <= 1 && is_integral(lengths.dtype()), DTypeError,
           "[ctc_loss] expected {} to be a vector of integers, got {} of shape {}.", name,
           to_string(lengths), lengths.shape());
  const Tensor all = lengths.reshape({lengths.numel()});
  Dims values;
  for (int64_t i = 0; i < all.numel(); ++i) values.push_back(all.select(0, i).item<int64_t>());
  return values;
}

}  // namespace

LS_OP(
    ctc_loss_backward,
    Tensor(const Tensor&, const Tensor&, const Tensor&, IntList, IntList, const Tensor&,
           const Tensor&, int64_t, bool),
    "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
    "target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool "
    "zero_infinity=False) -> Tensor")
    .doc("Gradient of _ctc_loss's log-probabilities as those of log_softmax's argument.")
    .structured(rules::ctc_loss_backward)
    .autocast(Autocast::kF32)
    .not_differentiable("the loss is differentiable once");

LS_OP(ctc_loss_forward, TwoTensors(const Tensor&, const Tensor&, IntList, IntList, int64_t, bool),
      "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int "
      "blank=0, bool zero_infinity=False) -> (Tensor, Tensor)")
    .doc(
        "The loss of each sequence, and the logarithms of the probabilities of the beginnings of "
        "its target.")
    .structured(rules::ctc_loss)
    .autocast(Autocast::kF32)
    .saves({"log_probs", "targets", "output0", "output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] {
            return op_ctc_loss_backward(grad, ctx.saved(0), ctx.saved(1), ctx.argument<IntList>(2),
                                        ctx.argument<IntList>(3), ctx.saved(2), ctx.saved(3),
                                        ctx.argument<int64_t>(4), ctx.argument<bool>(5));
          },
          [] { return Tensor(); });
    });

LS_OP(ctc_loss, Tensor(const Tensor&, const Tensor&, IntList, IntList, int64_t, int64_t, bool),
      "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
      "target_lengths, int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor")
    .doc("The loss of connectionist temporal classification.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& given, const Tensor& targets, IntList input_lengths,
                  IntList target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
      const bool single = given.dim() == 2;
      Tensor losses =
          std::get<0>(op_ctc_loss_forward(single ? given.unsqueeze(1) : given, targets,
                                          input_lengths, target_lengths, blank, zero_infinity));
      if (zero_infinity) {
        losses = masked_fill(losses, eq(losses, std::numeric_limits<double>::infinity()), 0);
      }
      if (static_cast<Reduction>(reduction) == Reduction::kMean) {
        std::vector<double> lengths;
        for (const int64_t length : target_lengths) {
          lengths.push_back(static_cast<double>(std::max<int64_t>(length, 1)));
        }
        const int64_t count = static_cast<int64_t>(lengths.size());
        losses = losses / to(tensor_from(lengths, {count}), losses.dtype(), losses.device());
      }
      const Tensor result = reduced(losses, reduction);
      return single && result.dim() == 1 ? result.squeeze(0) : result;
    });
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                IntList target_lengths, int64_t blank, Reduction reduction, bool zero_infinity) {
  return op_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank,
                     static_cast<int64_t>(reduction), zero_infinity);
}

LS_OP(ctc_loss_of_tensors,
      Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, bool),
      "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
      "target_lengths, int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor")
    .doc("ctc_loss with lengths in tensors; waits for them.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                  const Tensor& target_lengths, int64_t blank, int64_t reduction,
                  bool zero_infinity) {
      return op_ctc_loss(log_probs, targets, lengths_of("input_lengths", input_lengths),
                         lengths_of("target_lengths", target_lengths), blank, reduction,
                         zero_infinity);
    });

}  // namespace lockstep
