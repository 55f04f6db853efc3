#pragma once

#include <functional>
#include <tuple>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::sample {

// Small float64 operators with known derivatives, or with a known fault, and helpers for tensors.

/// (2 x, x * x): two differentiable results.
std::tuple<Tensor, Tensor> pair(const Tensor& x);
/// Returns the same results; the first alone has a derivative.
std::tuple<Tensor, Tensor> half_pair(const Tensor& x);
/// A copy of x whose derivative throws DataError("[sample] the derivative failed.").
Tensor failing(const Tensor& x);
/// A copy of x whose derivative first calls `inside`, then passes the gradient on.
Tensor calling(const Tensor& x);
inline thread_local std::function<void()> inside;
/// A copy of x with neither a derivative nor a declared reason for having none.
Tensor silent(const Tensor& x);
/// A copy of x that declares why it has no derivative.
Tensor constant(const Tensor& x);
/// A copy of x called as if inside a derivative; it has no derivative itself.
Tensor copy_backward(const Tensor& x);
/// A copy of x; its derivative returns a gradient of the wrong shape.
Tensor misshapen(const Tensor& x);
/// a + b; its derivative returns one gradient instead of two.
Tensor short_of_one(const Tensor& a, const Tensor& b);
/// A copy of x; its derivative returns three gradients instead of one.
Tensor generous(const Tensor& x);
/// 2 x with derivative 3, an error for gradcheck to find.
Tensor wrong(const Tensor& x);

/// parts[0] * weight; saves the list before the weight.
Tensor weighted(const std::vector<Tensor>& parts, const Tensor& weight);

/// Number of runs of the derivative of `calling` on this thread.
inline thread_local int calls = 0;

/// A float64 vector that requires grad.
Tensor leaf(std::initializer_list<double> values);
/// A float64 vector that does not require grad.
Tensor vector(std::initializer_list<double> values);
Tensor matrix(int64_t rows, int64_t columns, bool requires_grad = true);
/// The elements in row-major order, for any dtype and any strides.
std::vector<double> elements(const Tensor& tensor);

}  // namespace lockstep::sample
