#pragma once

#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that compute each element of the result from the same element of the arguments.
//
// Tensor arguments broadcast to a common shape. The result's dtype follows
// core/ops/pointwise/promotion.h: integers stay integers in add, sub, mul, square, relu, ... and
// become float32 in div, exp, .... A result keeps the strides of its arguments when these agree and
// leave no gaps, else it is row-major. `x_` writes into its first argument, `x_out` into `out`,
// which is resized unless it is a view. All throw ShapeError, DTypeError or DeviceError, and all
// are differentiable unless documented otherwise.

/// self + alpha * other.
Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
const Tensor& add_(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
const Tensor& add_(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
const Tensor& add_out(const Tensor& out, const Tensor& self, const Tensor& other,
                      const Scalar& alpha = 1);
/// self - alpha * other. Throws DTypeError for two bool tensors.
Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
const Tensor& sub_(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
const Tensor& sub_(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
const Tensor& sub_out(const Tensor& out, const Tensor& self, const Tensor& other,
                      const Scalar& alpha = 1);
/// other - alpha * self. Throws DTypeError for bools.
Tensor rsub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor rsub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor mul(const Tensor& self, const Tensor& other);
Tensor mul(const Tensor& self, const Scalar& other);
const Tensor& mul_(const Tensor& self, const Tensor& other);
const Tensor& mul_(const Tensor& self, const Scalar& other);
const Tensor& mul_out(const Tensor& out, const Tensor& self, const Tensor& other);
/// True division: integers become float32.
Tensor div(const Tensor& self, const Tensor& other);
Tensor div(const Tensor& self, const Scalar& other);
const Tensor& div_(const Tensor& self, const Tensor& other);
const Tensor& div_(const Tensor& self, const Scalar& other);
const Tensor& div_out(const Tensor& out, const Tensor& self, const Tensor& other);
/// The larger (smaller) of the two; NaN when either is. Equal elements share the gradient.
Tensor maximum(const Tensor& self, const Tensor& other);
Tensor minimum(const Tensor& self, const Tensor& other);
/// self to the power of a number. Throws for integers to a negative integer power.
Tensor pow(const Tensor& self, const Scalar& exponent);
const Tensor& pow_(const Tensor& self, const Scalar& exponent);

Tensor neg(const Tensor& self);
/// |self|; the gradient at 0 is 0.
Tensor abs(const Tensor& self);
/// self * self.
Tensor square(const Tensor& self);
Tensor exp(const Tensor& self);
/// Natural logarithm: -inf at 0, NaN below.
Tensor log(const Tensor& self);
Tensor sqrt(const Tensor& self);
/// 1 / sqrt(self).
Tensor rsqrt(const Tensor& self);
/// 1 / self.
Tensor reciprocal(const Tensor& self);
Tensor sin(const Tensor& self);
Tensor cos(const Tensor& self);
/// -1, 0 or 1; NaN gives 0. The gradient is 0.
Tensor sign(const Tensor& self);

Tensor tanh(const Tensor& self);
/// 1 / (1 + exp(-self)).
Tensor sigmoid(const Tensor& self);
/// max(self, 0); the gradient at 0 is 0.
Tensor relu(const Tensor& self);
const Tensor& relu_(const Tensor& self);
/// self * Phi(self), Phi the normal distribution function; `approximate` is "none" or "tanh"
/// (0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))). Hendrycks & Gimpel 2016.
Tensor gelu(const Tensor& self, std::string_view approximate = "none");
/// self * sigmoid(self).
Tensor silu(const Tensor& self);
/// a * sigmoid(b) for the halves a and b of self along `dim`, a dimension of even size. Dauphin et
/// al. 2017.
Tensor glu(const Tensor& self, int64_t dim = -1);
/// silu(gate) * up, rounded once (Shazeer 2020, arXiv 2002.05202). The operands broadcast.
Tensor swiglu(const Tensor& gate, const Tensor& up);

// First derivatives as separate operators. Each is differentiable itself, for double backward.

/// grad * gelu'(self).
Tensor gelu_backward(const Tensor& grad_output, const Tensor& self,
                     std::string_view approximate = "none");
/// grad * silu'(self).
Tensor silu_backward(const Tensor& grad_output, const Tensor& self);
/// grad * up * silu'(gate): the gradient of swiglu's gate. That of `up` is swiglu(gate, grad).
Tensor swiglu_backward(const Tensor& grad_output, const Tensor& gate, const Tensor& up);
/// grad where self > threshold, else 0: relu's derivative, for which `self` may be its output.
Tensor threshold_backward(const Tensor& grad_output, const Tensor& self, const Scalar& threshold);
/// grad * (1 - output^2).
Tensor tanh_backward(const Tensor& grad_output, const Tensor& output);
/// grad * (1 - output) * output.
Tensor sigmoid_backward(const Tensor& grad_output, const Tensor& output);

// Comparisons; bool results, no derivative.

Tensor eq(const Tensor& self, const Tensor& other);
Tensor eq(const Tensor& self, const Scalar& other);
Tensor ne(const Tensor& self, const Tensor& other);
Tensor ne(const Tensor& self, const Scalar& other);
Tensor lt(const Tensor& self, const Tensor& other);
Tensor lt(const Tensor& self, const Scalar& other);
Tensor le(const Tensor& self, const Tensor& other);
Tensor le(const Tensor& self, const Scalar& other);
Tensor gt(const Tensor& self, const Tensor& other);
Tensor gt(const Tensor& self, const Scalar& other);
Tensor ge(const Tensor& self, const Tensor& other);
Tensor ge(const Tensor& self, const Scalar& other);
/// True where self is zero (false).
Tensor logical_not(const Tensor& self);
Tensor isnan(const Tensor& self);
/// Neither infinite nor NaN.
Tensor isfinite(const Tensor& self);

/// self where the bool tensor `condition` is true, else other.
Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other);
/// A copy of self with `value` where the bool tensor `mask` is true.
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value);
const Tensor& masked_fill_(const Tensor& self, const Tensor& mask, const Scalar& value);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return add(a, b); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return sub(a, b); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return mul(a, b); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return div(a, b); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return mul(reciprocal(b), a); }
inline const Tensor& operator+=(const Tensor& a, const Tensor& b) { return add_(a, b); }
inline const Tensor& operator+=(const Tensor& a, const Scalar& b) { return add_(a, b); }
inline const Tensor& operator-=(const Tensor& a, const Tensor& b) { return sub_(a, b); }
inline const Tensor& operator-=(const Tensor& a, const Scalar& b) { return sub_(a, b); }
inline const Tensor& operator*=(const Tensor& a, const Tensor& b) { return mul_(a, b); }
inline const Tensor& operator*=(const Tensor& a, const Scalar& b) { return mul_(a, b); }
inline const Tensor& operator/=(const Tensor& a, const Tensor& b) { return div_(a, b); }
inline const Tensor& operator/=(const Tensor& a, const Scalar& b) { return div_(a, b); }

// Comparisons are element by element as well: whether two names mean one tensor is
// Tensor::is_same.

inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator==(const Tensor& a, const Scalar& b) { return eq(a, b); }
inline Tensor operator==(const Scalar& a, const Tensor& b) { return eq(b, a); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator!=(const Tensor& a, const Scalar& b) { return ne(a, b); }
inline Tensor operator!=(const Scalar& a, const Tensor& b) { return ne(b, a); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<(const Tensor& a, const Scalar& b) { return lt(a, b); }
inline Tensor operator<(const Scalar& a, const Tensor& b) { return gt(b, a); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator<=(const Tensor& a, const Scalar& b) { return le(a, b); }
inline Tensor operator<=(const Scalar& a, const Tensor& b) { return ge(b, a); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>(const Tensor& a, const Scalar& b) { return gt(a, b); }
inline Tensor operator>(const Scalar& a, const Tensor& b) { return lt(b, a); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator>=(const Tensor& a, const Scalar& b) { return ge(a, b); }
inline Tensor operator>=(const Scalar& a, const Tensor& b) { return le(b, a); }
inline Tensor operator!(const Tensor& a) { return logical_not(a); }

}  // namespace lockstep
