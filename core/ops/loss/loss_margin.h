#pragma once

#include "core/ops/loss/loss.h"

namespace lockstep {

// Losses that ask for a margin between scores or distances. `reduction` combines the losses of the
// rows or elements. Tensors of one loss broadcast; targets 1 and -1 may have any dtype.

/// For the cosine c of input1 and input2 along the last dimension: 1 - c where target is 1,
/// max(0, c - margin) where it is -1, else 0. Inputs [size] with a 0-d target, or [rows, size] with
/// a target [rows].
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin = 0, Reduction reduction = Reduction::kMean);
/// self where target is 1, max(0, margin - self) where it is -1, elsewhere their sum.
Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin = 1,
                            Reduction reduction = Reduction::kMean);
/// max(0, margin - target (input1 - input2)).
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin = 0, Reduction reduction = Reduction::kMean);
/// max(0, margin + d(anchor, positive) - d(anchor, negative)) for the distance d(a, b) = |a - b +
/// eps| of the p-norm along the last dimension; with `swap` the smaller of the two distances from
/// the negative counts (Balntas et al. 2016).
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                           Reduction reduction = Reduction::kMean);
/// log(1 + exp(-target self)), without overflow. self is floating.
Tensor soft_margin_loss(const Tensor& self, const Tensor& target,
                        Reduction reduction = Reduction::kMean);

// Scores [classes] or [rows, classes] of a floating dtype and int64 targets. Throws IndexError for
// a target that is no class.

/// The sum over classes c other than the target t of weight[t] max(0, margin - self[t] +
/// self[c])^p, p 1 or 2, divided by the number of classes.
Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p = 1,
                         const Scalar& margin = 1, OptionalTensor weight = {},
                         Reduction reduction = Reduction::kMean);
/// The sum over the targets t of a row, those before its first negative number, and over classes c
/// that are no target, of max(0, 1 - self[t] + self[c]), divided by the number of classes. Needs
/// memory for rows * classes^2 elements.
Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target,
                              Reduction reduction = Reduction::kMean);

}  // namespace lockstep
