#include "nn/margin_losses.h"

#include "core/ops/loss/loss_margin.h"

namespace lockstep::nn {

Tensor MarginRankingLoss::forward(const Tensor& x1, const Tensor& x2, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& a, const Tensor& b, const Tensor& sign) {
        return margin_ranking_loss(a, b, sign, margin_, reduction_);
      },
      x1, x2, target);
}

Tensor HingeEmbeddingLoss::forward(const Tensor& x, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& distance, const Tensor& sign) {
        return hinge_embedding_loss(distance, sign, margin_, reduction_);
      },
      x, target);
}

Tensor CosineEmbeddingLoss::forward(const Tensor& x1, const Tensor& x2,
                                    const Tensor& target) const {
  return run_forward(
      [this](const Tensor& a, const Tensor& b, const Tensor& sign) {
        return cosine_embedding_loss(a, b, sign, margin_, reduction_);
      },
      x1, x2, target);
}

Tensor SoftMarginLoss::forward(const Tensor& x, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& score, const Tensor& sign) {
        return soft_margin_loss(score, sign, reduction_);
      },
      x, target);
}

Tensor TripletMarginLoss::forward(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative) const {
  return run_forward(
      [this](const Tensor& a, const Tensor& p, const Tensor& n) {
        return triplet_margin_loss(a, p, n, options_.margin, options_.p, options_.eps,
                                   options_.swap, options_.reduction);
      },
      anchor, positive, negative);
}

MultiMarginLoss::MultiMarginLoss(MultiMarginOptions options) : options_(std::move(options)) {
  if (options_.weight.defined()) weight = register_buffer("weight", options_.weight);
}

Tensor MultiMarginLoss::forward(const Tensor& x, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& scores, const Tensor& classes) {
        return multi_margin_loss(scores, classes, options_.p, options_.margin, weight,
                                 options_.reduction);
      },
      x, target);
}

Tensor MultiLabelMarginLoss::forward(const Tensor& x, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& scores, const Tensor& classes) {
        return multilabel_margin_loss(scores, classes, reduction_);
      },
      x, target);
}

}  // namespace lockstep::nn
