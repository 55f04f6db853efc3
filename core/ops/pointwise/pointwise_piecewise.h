#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace lockstep {

// Piecewise and bounded activations. Floating dtypes only (DTypeError for others) unless documented
// otherwise. pointwise.h describes what all pointwise operators have in common.

/// scale * self, or scale * alpha * (exp(input_scale * self) - 1) where self <= 0. Clevert et al.
/// 2015.
Tensor elu(const Tensor& self, const Scalar& alpha = 1, const Scalar& scale = 1,
           const Scalar& input_scale = 1);
/// grad times elu's slope at `self_or_result`: elu's argument, or its result when `is_result`.
Tensor elu_backward(const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                    const Scalar& input_scale, bool is_result, const Tensor& self_or_result);
/// elu with input_scale = 1 / alpha: its slope is continuous. Throws Error for alpha = 0.
Tensor celu(const Tensor& self, const Scalar& alpha = 1);
/// elu with the alpha and scale that keep mean 0 and variance 1. Klambauer et al. 2017.
Tensor selu(const Tensor& self);
/// self, times `negative_slope` where self is not above 0.
Tensor leaky_relu(const Tensor& self, const Scalar& negative_slope = 0.01);
/// leaky_relu with a learned slope: one, or one for each channel (dimension 1). Throws ShapeError
/// when their number is not that of the channels, DTypeError when the dtypes differ.
Tensor prelu(const Tensor& self, const Tensor& weight);

/// self clamped to [min_val, max_val] in its own dtype; the gradient at the bounds is 0. Accepts
/// integers, but not bools.
Tensor hardtanh(const Tensor& self, const Scalar& min_val = -1, const Scalar& max_val = 1);
/// hardtanh(self, 0, 6).
Tensor relu6(const Tensor& self);
/// value where self <= threshold, else self. Accepts integers, but not bools.
Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value);
/// 0 where |self| <= lambd, else self.
Tensor hardshrink(const Tensor& self, const Scalar& lambd = 0.5);
/// self moved by lambd towards 0, and no further. Throws Error for a negative lambd.
Tensor softshrink(const Tensor& self, const Scalar& lambd = 0.5);
/// clamp(self + 3, 0, 6) / 6.
Tensor hardsigmoid(const Tensor& self);
/// self * hardsigmoid(self). Howard et al. 2019.
Tensor hardswish(const Tensor& self);

/// log(1 + exp(beta * self)) / beta; self itself where beta * self > threshold.
Tensor softplus(const Tensor& self, const Scalar& beta = 1, const Scalar& threshold = 20);
/// log(sigmoid(self)).
Tensor log_sigmoid(const Tensor& self);
/// self * tanh(softplus(self)). Misra 2019.
Tensor mish(const Tensor& self);
/// log(self / (1 - self)), the inverse of sigmoid, of self clamped to [eps, 1 - eps] when eps is
/// given. Integers become float32.
Tensor logit(const Tensor& self, std::optional<double> eps = std::nullopt);

}  // namespace lockstep
