#include "core/ops/loss/loss.h"

#include "core/base/check.h"
#include "core/dispatch/autocast_state.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/as_dtype.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/index/index.h"
#include "core/ops/loss/loss_rules.h"
#include "core/ops/loss/reduced_losses.h"
#include "core/ops/norm/batching_layers.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

namespace rules {
namespace {

/// Checks scores [classes] or [rows, classes] against targets [] or [rows].
void check_target(std::string_view op, const Tensor& self, const Tensor& target) {
  check_floating(op, self);
  LS_CHECK(self.dim() == 1 || self.dim() == 2, ShapeError,
           "[{}] expected scores [classes] or [rows, classes], got shape {}.", op, self.shape());
  const bool fits =
      self.dim() == 2 ? target.dim() == 1 && target.size(0) == self.size(0) : target.numel() == 1;
  LS_CHECK(fits, ShapeError, "[{}] expected a target for each row of {}, got targets of shape {}.",
           op, self.shape(), target.shape());
  check_class_numbers(op, target);
}

void check_weight(std::string_view op, const Tensor& self, OptionalTensor weight) {
  if (!weight) return;
  const int64_t classes = self.size(-1);
  LS_CHECK(weight->dim() == 1 && weight->size(0) == classes, ShapeError,
           "[{}] expected a weight for each class, shape [{}], got {}.", op, classes,
           weight->shape());
  LS_CHECK(weight->dtype() == self.dtype(), DTypeError,
           "[{}] dtypes of scores and weight differ: expected {}, got {}.", op,
           to_string(self.dtype()), to_string(weight->dtype()));
}

/// Shape of the loss: one per row, or a 0-d tensor if it is reduced or there is one row.
Dims loss_shape(const Tensor& self, int64_t reduction) {
  return reduction == static_cast<int64_t>(Reduction::kNone) && self.dim() == 2 ? Dims{self.size(0)}
                                                                                : Dims{};
}

Outputs nll_loss_forward(const Tensor& self, const Tensor& target, OptionalTensor weight,
                         int64_t reduction, int64_t) {
  check_target("nll_loss", self, target);
  check_weight("nll_loss", self, weight);
  check_reduction("nll_loss", reduction);
  Outputs outputs = one(loss_shape(self, reduction), self.dtype());
  outputs.specs.push_back(one({}, self.dtype()).specs[0]);
  return outputs;
}
Outputs nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                          OptionalTensor weight, int64_t reduction, int64_t,
                          const Tensor& total_weight) {
  check_target("nll_loss_backward", self, target);
  check_weight("nll_loss_backward", self, weight);
  check_reduction("nll_loss_backward", reduction);
  LS_CHECK(total_weight.numel() == 1 && total_weight.dtype() == self.dtype(), ShapeError,
           "[nll_loss_backward] total_weight must be the second result of nll_loss_forward: "
           "expected one element of {}, got {}.",
           to_string(self.dtype()), to_string(total_weight));
  const Dims wanted = loss_shape(self, reduction);
  LS_CHECK(same(grad_output.sizes(), wanted), ShapeError,
           "[nll_loss_backward] the gradient has the wrong shape: expected {}, got {}.",
           to_string(wanted), grad_output.shape());
  Outputs outputs = one(to_dims(self.sizes()), self.dtype());
  outputs.compute = self.dtype();
  outputs.cast_mask = 0b1;  // the gradient
  return outputs;
}
Outputs fused_cross_entropy(const Tensor& self, const Tensor& target, int64_t reduction, int64_t) {
  check_target("cross_entropy_loss", self, target);
  check_reduction("cross_entropy_loss", reduction);
  LS_CHECK(self.dim() == 2, ShapeError, "[_fused_cross_entropy] expected [rows, classes], got {}.",
           self.shape());
  const DType wide = promote(self.dtype(), DType::kF32);
  Outputs outputs = one(loss_shape(self, reduction), wide);
  outputs.specs.push_back(one({self.size(0)}, wide).specs[0]);
  return outputs;
}
Outputs fused_cross_entropy_backward(const Tensor& self, const Tensor& grad_output,
                                     const Tensor& target, const Tensor& logsumexp,
                                     int64_t reduction, int64_t) {
  check_target("_fused_cross_entropy_backward", self, target);
  check_reduction("_fused_cross_entropy_backward", reduction);
  const Dims wanted = loss_shape(self, reduction);
  LS_CHECK(same(grad_output.sizes(), wanted), ShapeError,
           "[_fused_cross_entropy_backward] the gradient has the wrong shape: expected {}, got {}.",
           to_string(wanted), grad_output.shape());
  LS_CHECK(self.dim() == 2 && same(logsumexp.sizes(), {self.size(0)}), ShapeError,
           "[_fused_cross_entropy_backward] expected a logsumexp for each row of {}, got shape {}.",
           self.shape(), logsumexp.shape());
  const DType wide = promote(self.dtype(), DType::kF32);
  LS_CHECK(logsumexp.dtype() == wide && grad_output.dtype() == wide, DTypeError,
           "[_fused_cross_entropy_backward] logsumexp and gradient of {} rows must be {}, got {} "
           "and {}.",
           to_string(self.dtype()), to_string(wide), to_string(logsumexp.dtype()),
           to_string(grad_output.dtype()));
  return one(to_dims(self.sizes()), self.dtype());
}

}  // namespace
}  // namespace rules

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;

/// The dimension of the classes: the first of [classes], else the second.
int64_t class_dim(const Tensor& self) { return self.dim() == 1 ? 0 : 1; }

/// [rows, classes, d1, ...] as [rows * d1 * ..., classes]; one or two dimensions stay as they are.
Tensor as_rows(const Tensor& self) {
  if (self.dim() <= 2) return self;
  Dims order{0};
  for (int64_t i = 2; i < self.dim(); ++i) order.push_back(i);
  order.push_back(1);
  return self.permute(order).reshape({-1, self.size(1)});
}

/// Throws ShapeError unless the targets' shape matches the scores'.
void check_target_shape(std::string_view op, const Tensor& self, const Tensor& target) {
  Dims wanted = to_dims(self.sizes());
  LS_CHECK(!wanted.empty(), ShapeError,
           "[{}] expected scores of shape [classes] or [rows, classes, ...], got a 0-d tensor.",
           op);
  wanted.erase(static_cast<size_t>(class_dim(self)));
  LS_CHECK(same(target.sizes(), wanted) || (wanted.empty() && target.numel() == 1), ShapeError,
           "[{}] scores of shape {} need targets of shape {}: got {}.", op, self.shape(),
           to_string(wanted), target.shape());
}

/// Reshapes the losses of rows to the target's shape if they are not reduced.
Tensor in_shape_of(const Tensor& loss, const Tensor& target, int64_t reduction) {
  return reduction == static_cast<int64_t>(Reduction::kNone) ? loss.reshape(target.sizes()) : loss;
}

/// `weight` [classes] as a factor of scores of self's shape.
Tensor along_classes(const Tensor& weight, const Tensor& self) {
  Dims sizes(static_cast<size_t>(self.dim()), 1);
  sizes[static_cast<size_t>(class_dim(self))] = weight.numel();
  return weight.reshape(sizes);
}

/// Cross-entropy with targets that are probabilities.
Tensor with_probabilities(const Tensor& self, const Tensor& target, OptionalTensor weight,
                          int64_t reduction, double label_smoothing) {
  LS_CHECK(same(self.sizes(), target.sizes()), ShapeError,
           "[cross_entropy_loss] probabilities need the shape of the scores: expected {}, got {}.",
           self.shape(), target.shape());
  rules::check_reduction("cross_entropy_loss", reduction);
  const int64_t dim = class_dim(self);
  LS_CHECK(!weight || (weight->dim() == 1 && weight->size(0) == self.size(dim)), ShapeError,
           "[cross_entropy_loss] expected a weight for each of {} classes, got shape {}.",
           self.size(dim), weight->shape());
  const double classes = static_cast<double>(self.size(dim));
  Tensor terms = log_softmax(self, dim);
  terms = terms * (label_smoothing > 0 ? target * (1 - label_smoothing) + label_smoothing / classes
                                       : target);
  if (weight) terms = terms * along_classes(*weight, self);
  switch (static_cast<Reduction>(reduction)) {
    case Reduction::kNone:
      return -sum(terms, {dim});
    case Reduction::kSum:
      return -sum(terms);
    default:
      return -sum(terms) / (static_cast<double>(self.numel()) / classes);
  }
}

/// The term of label smoothing: the cross-entropy with the uniform distribution.
Tensor uniform_part(const Tensor& log_probabilities, const Tensor& target, OptionalTensor weight,
                    int64_t reduction, int64_t ignore_index) {
  const int64_t dim = class_dim(log_probabilities);
  const Tensor terms =
      weight ? log_probabilities * along_classes(*weight, log_probabilities) : log_probabilities;
  const Tensor ignored = eq(target, ignore_index);
  const Tensor losses = masked_fill(-sum(terms, {dim}), ignored, 0);
  if (reduction != static_cast<int64_t>(Reduction::kMean)) return reduced(losses, reduction);
  if (!weight) return losses.sum() / as_dtype(sum(logical_not(ignored)), losses.dtype());
  const Tensor chosen = masked_fill(target, ignored, 0).flatten();
  const Tensor weights = index_select(*weight, 0, as_dtype(chosen, DType::kI64));
  return losses.sum() / masked_fill(weights, ignored.flatten(), 0).sum();
}

Tensor unfused(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction,
               int64_t ignore_index, double label_smoothing) {
  if (is_floating(target.dtype())) {
    return with_probabilities(self, target, weight, reduction, label_smoothing);
  }
  const int64_t dim = class_dim(self);
  const Tensor log_probabilities = log_softmax(self, dim);
  const Tensor loss =
      nll_loss(log_probabilities, target, weight, static_cast<Reduction>(reduction), ignore_index);
  if (label_smoothing == 0) return loss;
  const Tensor uniform = uniform_part(log_probabilities, target, weight, reduction, ignore_index);
  return loss * (1 - label_smoothing) +
         uniform * (label_smoothing / static_cast<double>(self.size(dim)));
}

/// The softmax of rows, given their logsumexp.
Tensor probabilities(const Tensor& rows, const Tensor& logsumexp) {
  return exp(rows - logsumexp.unsqueeze(1));
}

/// The factor [rows, 1] of each row's gradient: grad_output, divided by the number of rows used for
/// a mean, and 0 where the target is ignored.
Tensor row_scales(const Tensor& grad_output, const Tensor& target, int64_t reduction,
                  int64_t ignore_index, int64_t rows) {
  const Tensor used = as_dtype(ne(target, ignore_index), grad_output.dtype());
  Tensor each = grad_output.expand({rows}) * used;
  if (reduction == static_cast<int64_t>(Reduction::kMean)) each = each / used.sum();
  return each.unsqueeze(1);
}

/// The gradient of _fused_cross_entropy's logits, written over them where nothing else reads them.
Tensor gradient_of_loss(VjpContext& ctx, const Tensor& grad) {
  const auto reduction = static_cast<Reduction>(ctx.argument<int64_t>(2));
  const int64_t ignore_index = ctx.argument<int64_t>(3);
  if (const Tensor logits = ctx.take_saved(0); logits.defined()) {
    return fused_cross_entropy_backward_(logits, grad, ctx.saved(1), ctx.saved(2), reduction,
                                         ignore_index);
  }
  return fused_cross_entropy_backward(ctx.saved(0), grad, ctx.saved(1), ctx.saved(2), reduction,
                                      ignore_index);
}

}  // namespace

LS_OP(nll_loss_forward, TwoTensors(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t),
      "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
      "ignore_index) -> (Tensor output, Tensor total_weight)")
    .doc("-self[target] for rows of log-probabilities, and the sum of the targets' weights.")
    .structured(rules::nll_loss_forward)
    .batching(batching::nll_loss_forward)
    .saves({"self", "target", "weight", "output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] {
            return nll_loss_backward(grad, ctx.saved(0), ctx.saved(1), ctx.saved(2),
                                     static_cast<Reduction>(ctx.argument<int64_t>(3)),
                                     ctx.argument<int64_t>(4), ctx.saved(3));
          },
          [] { return Tensor(); }, [] { return Tensor(); });
    });
std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                            OptionalTensor weight, Reduction reduction,
                                            int64_t ignore_index) {
  return op_nll_loss_forward(self, target, weight, static_cast<int64_t>(reduction), ignore_index);
}

LS_OP(nll_loss_forward_out,
      TwoTensors(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t, const Tensor&,
                 const Tensor&),
      "nll_loss_forward.output(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
      "ignore_index, *, Tensor(a!) output, Tensor(b!) total_weight) -> (Tensor(a!), Tensor(b!))")
    .doc("nll_loss_forward, written into output and total_weight.")
    .composite([](const Tensor& self, const Tensor& target, OptionalTensor weight,
                  int64_t reduction, int64_t ignore_index, const Tensor& output,
                  const Tensor& total_weight) {
      return write_results(op_nll_loss_forward(self, target, weight, reduction, ignore_index),
                           output, total_weight);
    });

LS_OP(nll_loss_backward,
      Tensor(const Tensor&, const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t,
             const Tensor&),
      "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int "
      "reduction, SymInt ignore_index, Tensor total_weight) -> Tensor")
    .doc("Gradient of nll_loss_forward's first argument.")
    .structured(rules::nll_loss_backward)
    .batching(batching::nll_loss_backward)
    .out("grad_input")
    .saves({"target", "weight", "total_weight"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      Gradients gradients(ctx.input_count());
      if (!ctx.needs(0)) return gradients;
      // The backward is linear in grad_output, and its transpose is the loss itself.
      const auto reduction = static_cast<Reduction>(ctx.argument<int64_t>(4));
      const bool mean = reduction == Reduction::kMean;
      const Tensor loss = std::get<0>(nll_loss_forward(grad, ctx.saved(0), ctx.saved(1),
                                                       mean ? Reduction::kSum : reduction,
                                                       ctx.argument<int64_t>(5)));
      gradients[0] = mean ? loss / ctx.saved(2) : loss;
      return gradients;
    });
Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         OptionalTensor weight, Reduction reduction, int64_t ignore_index,
                         const Tensor& total_weight) {
  return op_nll_loss_backward(grad_output, self, target, weight, static_cast<int64_t>(reduction),
                              ignore_index, total_weight);
}

LS_OP(nll_loss, Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t),
      "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
      "ignore_index=-100) -> Tensor")
    .doc("-self[target] for log-probabilities [classes] or [rows, classes].")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, OptionalTensor weight,
                  int64_t reduction, int64_t ignore_index) {
      return std::get<0>(op_nll_loss_forward(self, target, weight, reduction, ignore_index));
    });

LS_OP(nll_loss_out,
      const Tensor&(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t, const Tensor&),
      "nll_loss.out(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
      "ignore_index=-100, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("nll_loss, written into out.")
    .composite([](const Tensor& self, const Tensor& target, OptionalTensor weight,
                  int64_t reduction, int64_t ignore_index, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_nll_loss(self, target, weight, reduction, ignore_index));
    });

LS_OP(nll_loss_nd, Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t),
      "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
      "ignore_index=-100) -> Tensor")
    .doc("-self[target] for log-probabilities [rows, classes, ...].")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, OptionalTensor weight,
                  int64_t reduction, int64_t ignore_index) {
      check_target_shape("nll_loss", self, target);
      const Tensor loss = std::get<0>(
          op_nll_loss_forward(as_rows(self), self.dim() <= 2 ? target : target.flatten(), weight,
                              reduction, ignore_index));
      return in_shape_of(loss, target, reduction);
    });
Tensor nll_loss(const Tensor& self, const Tensor& target, OptionalTensor weight,
                Reduction reduction, int64_t ignore_index) {
  return op_nll_loss_nd(self, target, weight, static_cast<int64_t>(reduction), ignore_index);
}

LS_OP(
    fused_cross_entropy, TwoTensors(const Tensor&, const Tensor&, int64_t, int64_t),
    "_fused_cross_entropy(Tensor self, Tensor target, int reduction, int ignore_index) -> (Tensor "
    "loss, Tensor logsumexp)")
    .doc("Cross-entropy of logits [rows, classes] and class numbers in float32, read once.")
    .structured(rules::fused_cross_entropy)
    .batching(batching::fused_cross_entropy)
    .saves({"self", "target", "output1"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      const Tensor& self = ctx.saved(0);
      return ctx.gradients(
          [&] {
            Tensor of_logsumexp;
            if (grads[1].defined()) {
              const Tensor part = probabilities(self, ctx.saved(2)) * grads[1].unsqueeze(1);
              of_logsumexp = as_dtype(part, self.dtype());
            }
            if (!grads[0].defined()) return of_logsumexp;
            const Tensor of_loss = gradient_of_loss(ctx, grads[0]);
            return of_logsumexp.defined() ? of_loss + of_logsumexp : of_loss;
          },
          [] { return Tensor(); });
    });
std::tuple<Tensor, Tensor> fused_cross_entropy(const Tensor& self, const Tensor& target,
                                               Reduction reduction, int64_t ignore_index) {
  return op_fused_cross_entropy(self, target, static_cast<int64_t>(reduction), ignore_index);
}

LS_OP(fused_cross_entropy_backward,
      Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t),
      "_fused_cross_entropy_backward(Tensor self, Tensor grad_output, Tensor target, Tensor "
      "logsumexp, int reduction, int ignore_index) -> Tensor")
    .doc("Gradient of the logits of _fused_cross_entropy, written once.")
    .structured(rules::fused_cross_entropy_backward)
    .batching(batching::fused_cross_entropy_backward)
    .in_place()
    .saves({"self", "grad_output", "target", "logsumexp"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      // dx = scale (exp(x - logsumexp) - onehot), a scale for each row.
      const Tensor& target = ctx.saved(2);
      const int64_t reduction = ctx.argument<int64_t>(4);
      const int64_t ignore_index = ctx.argument<int64_t>(5);
      const Tensor moved = grad * probabilities(ctx.saved(0), ctx.saved(3));
      const auto scales = [&](const Tensor& shared) {
        return row_scales(shared, target, reduction, ignore_index, grad.size(0));
      };
      Gradients gradients(ctx.input_count());
      if (ctx.needs(1)) {
        const Tensor safe = masked_fill(target, eq(target, ignore_index), 0);
        const Tensor chosen = gather(grad, 1, as_dtype(safe, DType::kI64).unsqueeze(1));
        const Tensor along = (sum(moved, {1}, true) - chosen) * scales(ones({}, grad.options()));
        gradients[1] = as_dtype(sum_to_size(along.squeeze(1), ctx.sizes(1)), ctx.input(1).dtype);
      }
      const Tensor of_scores = moved * scales(ctx.saved(1));
      if (ctx.needs(0)) gradients[0] = as_dtype(of_scores, ctx.input(0).dtype);
      if (ctx.needs(3)) gradients[3] = as_dtype(-sum(of_scores, {1}), ctx.input(3).dtype);
      return gradients;
    });
Tensor fused_cross_entropy_backward(const Tensor& self, const Tensor& grad_output,
                                    const Tensor& target, const Tensor& logsumexp,
                                    Reduction reduction, int64_t ignore_index) {
  return op_fused_cross_entropy_backward(self, grad_output, target, logsumexp,
                                         static_cast<int64_t>(reduction), ignore_index);
}
const Tensor& fused_cross_entropy_backward_(const Tensor& self, const Tensor& grad_output,
                                            const Tensor& target, const Tensor& logsumexp,
                                            Reduction reduction, int64_t ignore_index) {
  return op_fused_cross_entropy_backward.in_place(self, grad_output, target, logsumexp,
                                                  static_cast<int64_t>(reduction), ignore_index);
}

LS_OP(unfused_cross_entropy,
      Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t, double),
      "_unfused_cross_entropy(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
      "ignore_index, float label_smoothing) -> Tensor")
    .doc("cross_entropy_loss of one operator per step: for probabilities, weights and smoothing.")
    .autocast(Autocast::kF32)
    .composite(unfused);

LS_OP(cross_entropy_loss,
      Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t, double),
      "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
      "ignore_index=-100, float label_smoothing=0.) -> Tensor")
    .doc("Cross-entropy of logits and class numbers or probabilities; autocast gives float32.")
    .composite([](const Tensor& self, const Tensor& target, OptionalTensor weight,
                  int64_t reduction, int64_t ignore_index, double label_smoothing) {
      LS_CHECK(label_smoothing >= 0 && label_smoothing <= 1, ShapeError,
               "[cross_entropy_loss] label_smoothing must lie in [0, 1], got {}.", label_smoothing);
      if (weight || label_smoothing > 0 || is_floating(target.dtype())) {
        return op_unfused_cross_entropy(self, target, weight, reduction, ignore_index,
                                        label_smoothing);
      }
      check_target_shape("cross_entropy_loss", self, target);
      const Tensor rows = self.dim() == 1 ? self.unsqueeze(0) : as_rows(self);
      const Tensor targets = target.dim() == 1 ? target : target.reshape({-1});
      const Tensor loss =
          std::get<0>(op_fused_cross_entropy(rows, targets, reduction, ignore_index));
      // ATen rounds the loss to the logits' dtype. Autocast casts its logits to f32, so that the
      // loss is f32 there.
      const bool rounds = !is_autocast_enabled(self.device().type);
      return in_shape_of(rounds ? as_dtype(loss, self.dtype()) : loss, target, reduction);
    });
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, OptionalTensor weight,
                          Reduction reduction, int64_t ignore_index, double label_smoothing) {
  return op_cross_entropy_loss(self, target, weight, static_cast<int64_t>(reduction), ignore_index,
                               label_smoothing);
}
Tensor cross_entropy_loss_reference(const Tensor& self, const Tensor& target, OptionalTensor weight,
                                    Reduction reduction, int64_t ignore_index,
                                    double label_smoothing) {
  return unfused(self, target, weight, static_cast<int64_t>(reduction), ignore_index,
                 label_smoothing);
}

}  // namespace lockstep
