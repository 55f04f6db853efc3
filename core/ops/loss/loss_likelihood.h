#pragma once

#include "core/ops/loss/loss.h"

namespace lockstep {

/// -target log(self) - (1 - target) log(1 - self), times `weight`, for probabilities self; each
/// logarithm is at least -100. NaN for a self outside of [0, 1].
Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, OptionalTensor weight = {},
                            Reduction reduction = Reduction::kMean);
/// exp(self) - target self for the logarithms self of a Poisson distribution's means, or, without
/// `log_input`, self - target log(self + eps) for the means; `full` adds Stirling's formula for
/// log(target!) where target > 1.
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input = true,
                        bool full = false, double eps = 1e-8,
                        Reduction reduction = Reduction::kMean);

}  // namespace lockstep
