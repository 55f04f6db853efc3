#include "core/ops/loss/loss_margin.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/index/index.h"
#include "core/ops/loss/loss_rules.h"
#include "core/ops/loss/reduced_losses.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/pointwise/pointwise_piecewise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace {

Tensor positive_part(const Tensor& x) { return clamp_min(x, 0); }

/// The p-norm of the difference along the last dimension; `eps` keeps its gradient finite.
Tensor distance(const Tensor& a, const Tensor& b, double p, double eps) {
  const Tensor apart = a - b + eps;
  return linalg_vector_norm(apart, p, {-1});
}

/// Scores as [rows, classes]: a vector is one row, a number one row of one class.
Tensor as_rows(std::string_view op, const Tensor& self) {
  rules::check_floating(op, self);
  LS_CHECK(self.dim() <= 2 && (self.dim() == 0 || self.size(-1) > 0), ShapeError,
           "[{}] expected scores [classes] or [rows, classes] with at least one class, got shape "
           "{}.",
           op, self.shape());
  return self.dim() == 2 ? self : self.reshape({1, self.numel()});
}

/// The losses [rows], reduced; without a reduction a single row's loss is 0-d where `single`.
Tensor of_rows(const Tensor& losses, int64_t reduction, bool single) {
  return single ? reduced(losses, reduction).reshape({}) : reduced(losses, reduction);
}

using TwoTensors = std::tuple<Tensor, Tensor>;

TwoTensors multilabel_margin(const Tensor& self, const Tensor& target, int64_t reduction) {
  constexpr std::string_view kName = "multilabel_margin_loss";
  rules::check_reduction(kName, reduction);
  const Tensor rows = as_rows(kName, self);
  LS_CHECK(same(target.sizes(), self.sizes()), ShapeError,
           "[{}] expected targets of the scores' shape {}, got {}.", kName, self.shape(),
           target.shape());
  LS_CHECK(target.dtype() == DType::kI64, DTypeError,
           "[{}] expected int64 targets, got {}. Cast them with to(DType::kI64).", kName,
           to_string(target.dtype()));
  const Tensor labels = target.reshape(rows.sizes());
  const Tensor given = cumprod(ge(labels, 0), 1).to(DType::kBool);  // up to the first negative
  const Tensor places = masked_fill(labels, logical_not(given), 0);
  const Tensor counts =
      scatter_add(zeros(rows.sizes(), rows.options()), 1, places, given.to(rows.dtype()));
  const Tensor is_target = gt(counts, 0);
  // [rows, targets, classes]
  const Tensor apart = 1 - gather(rows, 1, places).unsqueeze(2) + rows.unsqueeze(1);
  const Tensor counted = logical_and(given.unsqueeze(2), logical_not(is_target).unsqueeze(1));
  const Tensor losses = sum(masked_fill(positive_part(apart), logical_not(counted), 0), {1, 2}) /
                        static_cast<double>(rows.size(1));
  return {of_rows(losses, reduction, self.dim() < 2),
          is_target.to(self.dtype()).reshape(target.sizes())};
}

}  // namespace

LS_OP(cosine_embedding_loss, Tensor(const Tensor&, const Tensor&, const Tensor&, double, int64_t),
      "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "
      "reduction=1) -> Tensor")
    .doc("1 - cos where target is 1, max(0, cos - margin) where it is -1.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                  int64_t reduction) {
      rules::check_reduction("cosine_embedding_loss", reduction);
      LS_CHECK(
          target.dim() <= 1 && input1.dim() == target.dim() + 1 && input2.dim() == target.dim() + 1,
          ShapeError,
          "[cosine_embedding_loss] expected inputs [size] with a 0-d target, or [rows, size] "
          "with a target [rows], got {}, {} and {}.",
          input1.shape(), input2.shape(), target.shape());
      constexpr double kEpsilon = 1e-12;  // as in ATen
      const Tensor lengths =
          sqrt((sum(square(input1), {-1}) + kEpsilon) * (sum(square(input2), {-1}) + kEpsilon));
      const Tensor cosine = sum(input1 * input2, {-1}) / lengths;
      const Tensor zero = zeros_like(cosine);
      return reduced(where(eq(target, 1), 1 - cosine, zero) +
                         where(eq(target, -1), positive_part(cosine - margin), zero),
                     reduction);
    });
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, Reduction reduction) {
  return op_cosine_embedding_loss(input1, input2, target, margin, static_cast<int64_t>(reduction));
}

LS_OP(hinge_embedding_loss, Tensor(const Tensor&, const Tensor&, double, int64_t),
      "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> "
      "Tensor")
    .doc("self where target is 1, max(0, margin - self) where it is -1.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, double margin, int64_t reduction) {
      rules::check_reduction("hinge_embedding_loss", reduction);
      // As in ATen, integers take a whole margin and give whole losses.
      check_holds("hinge_embedding_loss", "margin", self.dtype(), margin);
      const Scalar limit = is_floating(self.dtype()) ? Scalar(margin) : Scalar(margin).to_int();
      const Tensor zero = zeros_like(self);
      return reduced(where(ne(target, 1), positive_part(limit - self), zero) +
                         where(ne(target, -1), self, zero),
                     reduction);
    });
Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin,
                            Reduction reduction) {
  return op_hinge_embedding_loss(self, target, margin, static_cast<int64_t>(reduction));
}

LS_OP(margin_ranking_loss, Tensor(const Tensor&, const Tensor&, const Tensor&, double, int64_t),
      "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "
      "reduction=1) -> Tensor")
    .doc("max(0, margin - target (input1 - input2)).")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                  int64_t reduction) {
      rules::check_reduction("margin_ranking_loss", reduction);
      return reduced(positive_part(neg(target) * (input1 - input2) + margin), reduction);
    });
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin, Reduction reduction) {
  return op_margin_ranking_loss(input1, input2, target, margin, static_cast<int64_t>(reduction));
}

LS_OP(triplet_margin_loss,
      Tensor(const Tensor&, const Tensor&, const Tensor&, double, double, double, bool, int64_t),
      "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
      "float p=2, float eps=1e-06, bool swap=False, int reduction=1) -> Tensor")
    .doc("max(0, margin + |anchor - positive| - |anchor - negative|) with the p-norm.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                  double margin, double p, double eps, bool swap, int64_t reduction) {
      rules::check_reduction("triplet_margin_loss", reduction);
      LS_CHECK(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(), ShapeError,
               "[triplet_margin_loss] expected as many dimensions of all three, got {}, {} and {}.",
               anchor.shape(), positive.shape(), negative.shape());
      const Tensor near = distance(anchor, positive, p, eps);
      Tensor far = distance(anchor, negative, p, eps);
      if (swap) far = minimum(far, distance(positive, negative, p, eps));
      return reduced(positive_part(margin + near - far), reduction);
    });
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, Reduction reduction) {
  return op_triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap,
                                static_cast<int64_t>(reduction));
}

LS_OP(soft_margin_loss, Tensor(const Tensor&, const Tensor&, int64_t),
      "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
    .doc("log(1 + exp(-target self)).")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction) {
      rules::check_floating("soft_margin_loss", self);
      rules::check_reduction("soft_margin_loss", reduction);
      const Tensor wrong = neg(self) * target;
      return reduced(neg(log_sigmoid(neg(wrong))).to(self.dtype()), reduction);
    });
Tensor soft_margin_loss(const Tensor& self, const Tensor& target, Reduction reduction) {
  return op_soft_margin_loss(self, target, static_cast<int64_t>(reduction));
}
LS_OP(soft_margin_loss_out, const Tensor&(const Tensor&, const Tensor&, int64_t, const Tensor&),
      "soft_margin_loss.out(Tensor self, Tensor target, int reduction=1, *, Tensor(a!) out) "
      "-> Tensor(a!)")
    .doc("soft_margin_loss, written into out.")
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_soft_margin_loss(self, target, reduction));
    });

LS_OP(multi_margin_loss,
      Tensor(const Tensor&, const Tensor&, Scalar, Scalar, OptionalTensor, int64_t),
      "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
      "weight=None, int reduction=1) -> Tensor")
    .doc("The mean over classes of max(0, margin - self[target] + self[class])^p, p 1 or 2.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, Scalar p, Scalar margin,
                  OptionalTensor weight, int64_t reduction) {
      constexpr std::string_view kName = "multi_margin_loss";
      rules::check_reduction(kName, reduction);
      LS_CHECK(p.to_double() == 1 || p.to_double() == 2, Error, "[{}] expected p 1 or 2, got {}.",
               kName, to_string(p));
      const Tensor rows = as_rows(kName, self);
      const int64_t count = rows.size(0);
      const int64_t classes = rows.size(1);
      LS_CHECK(target.dim() <= 1 && target.numel() == count, ShapeError,
               "[{}] expected a target for each of {} rows, got targets of shape {}.", kName, count,
               target.shape());
      LS_CHECK(target.dtype() == DType::kI64, DTypeError,
               "[{}] expected int64 targets, got {}. Cast them with to(DType::kI64).", kName,
               to_string(target.dtype()));
      const Tensor places = target.reshape({count, 1});
      Tensor apart = positive_part(margin - gather(rows, 1, places) + rows);
      if (p.to_double() == 2) apart = square(apart);
      if (weight) {
        LS_CHECK(weight->dim() <= 1 && weight->numel() == classes, ShapeError,
                 "[{}] expected a weight for each of {} classes, got shape {}.", kName, classes,
                 weight->shape());
        const Tensor each = weight->reshape({classes});
        apart = apart * index_select(each, 0, places.reshape({count})).unsqueeze(1);
      }
      const Tensor own = eq(arange(Scalar(classes), {DType::kI64, self.device()}), places);
      const Tensor losses = sum(masked_fill(apart, own, 0), {1}) / static_cast<double>(classes);
      return of_rows(losses, reduction, target.dim() == 0);
    });
Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p,
                         const Scalar& margin, OptionalTensor weight, Reduction reduction) {
  return op_multi_margin_loss(self, target, p, margin, weight, static_cast<int64_t>(reduction));
}
LS_OP(multi_margin_loss_out,
      const Tensor&(const Tensor&, const Tensor&, Scalar, Scalar, OptionalTensor, int64_t,
                    const Tensor&),
      "multi_margin_loss.out(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
      "weight=None, int reduction=1, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("multi_margin_loss, written into out.")
    .composite([](const Tensor& self, const Tensor& target, Scalar p, Scalar margin,
                  OptionalTensor weight, int64_t reduction, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_multi_margin_loss(self, target, p, margin, weight, reduction));
    });

LS_OP(multilabel_margin_loss_forward, TwoTensors(const Tensor&, const Tensor&, int64_t),
      "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor "
      "output, Tensor is_target)")
    .doc("multilabel_margin_loss, and 1 for each class that is a target, else 0.")
    .composite(multilabel_margin);
LS_OP(multilabel_margin_loss_forward_out,
      TwoTensors(const Tensor&, const Tensor&, int64_t, const Tensor&, const Tensor&),
      "multilabel_margin_loss_forward.output(Tensor self, Tensor target, int reduction, *, "
      "Tensor(a!) output, Tensor(b!) is_target) -> (Tensor(a!) output, Tensor(b!) is_target)")
    .doc("multilabel_margin_loss_forward, written into output and is_target.")
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& output,
                  const Tensor& is_target) {
      return write_results(op_multilabel_margin_loss_forward(self, target, reduction), output,
                           is_target);
    });

LS_OP(multilabel_margin_loss, Tensor(const Tensor&, const Tensor&, int64_t),
      "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
    .doc(
        "The sum of max(0, 1 - self[t] + self[c]) over targets t and other classes c, over the "
        "classes.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction) {
      return std::get<0>(multilabel_margin(self, target, reduction));
    });
Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, Reduction reduction) {
  return op_multilabel_margin_loss(self, target, static_cast<int64_t>(reduction));
}
LS_OP(multilabel_margin_loss_out,
      const Tensor&(const Tensor&, const Tensor&, int64_t, const Tensor&),
      "multilabel_margin_loss.out(Tensor self, Tensor target, int reduction=1, *, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("multilabel_margin_loss, written into out.")
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_multilabel_margin_loss(self, target, reduction));
    });

}  // namespace lockstep
