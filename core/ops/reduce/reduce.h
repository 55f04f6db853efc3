#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Reductions and scans. Dimensions may be negative (-1 is the last); an empty list of them means
// all; with `keepdim` reduced dimensions stay in the result with size 1.
//
// Floating-point results are summed in fixed blocks, so they have the same bits for any number of
// threads. Integers and bools sum to int64. `dtype` is the dtype to compute in and return; by
// default floating inputs keep theirs.

Tensor sum(const Tensor& self);
Tensor sum(const Tensor& self, IntList dims, bool keepdim = false,
           std::optional<DType> dtype = std::nullopt);
/// The mean of no elements is NaN. Throws DTypeError for an integer result.
Tensor mean(const Tensor& self);
Tensor mean(const Tensor& self, IntList dims, bool keepdim = false,
            std::optional<DType> dtype = std::nullopt);
/// Reverse of broadcasting: sums self over the dimensions in which `sizes` was broadcast to self's
/// shape. Throws ShapeError when `sizes` does not broadcast to self's shape.
Tensor sum_to_size(const Tensor& self, IntList sizes);

/// Largest / smallest element; NaN if there is one. Throws IndexError when there are no elements.
/// Equal extrema share the gradient equally.
Tensor amax(const Tensor& self, IntList dims = {}, bool keepdim = false);
Tensor amin(const Tensor& self, IntList dims = {}, bool keepdim = false);
Tensor max(const Tensor& self);
Tensor min(const Tensor& self);
/// Values and their int64 indices along `dim`: of equal elements, or of NaNs, the first. The whole
/// gradient goes to that element.
std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim = false);
std::tuple<Tensor, Tensor> min(const Tensor& self, int64_t dim, bool keepdim = false);
/// int64 index of the largest / smallest element along `dim`, or in the flattened tensor.
Tensor argmax(const Tensor& self, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);
Tensor argmin(const Tensor& self, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);

/// Whether any / all elements are non-zero, as bool (uint8 for uint8 input).
Tensor any(const Tensor& self);
Tensor any(const Tensor& self, int64_t dim, bool keepdim = false);
Tensor all(const Tensor& self);
Tensor all(const Tensor& self, int64_t dim, bool keepdim = false);

/// The number of non-zero elements, int64. NaN is not zero.
Tensor count_nonzero(const Tensor& self, IntList dims = {});

/// The product of all elements, or along one dimension; 1 for no elements. Integers and bools are
/// multiplied as int64. Gradients are exact also where elements are zero.
Tensor prod(const Tensor& self);
Tensor prod(const Tensor& self, int64_t dim, bool keepdim = false,
            std::optional<DType> dtype = std::nullopt);

/// Variance and standard deviation: the sum of squared distances from the mean, divided by
/// max(0, count - correction); `correction` defaults to 1 (Bessel). If that is 0 the result is NaN
/// or infinite. Throws DTypeError unless self is floating.
Tensor var(const Tensor& self, IntList dims = {}, std::optional<Scalar> correction = std::nullopt,
           bool keepdim = false);
/// Where the standard deviation is 0, its gradient is 0.
Tensor std(const Tensor& self, IntList dims = {}, std::optional<Scalar> correction = std::nullopt,
           bool keepdim = false);
/// Variance and mean, computed in one kernel.
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, IntList dims = {},
                                    std::optional<Scalar> correction = std::nullopt,
                                    bool keepdim = false);

/// log(sum(exp(self))) without overflow; -inf for no elements. Integers become float32.
Tensor logsumexp(const Tensor& self, IntList dims, bool keepdim = false);
/// Cumulative logsumexp along `dim`. Floating dtypes only.
Tensor logcumsumexp(const Tensor& self, int64_t dim);
/// (sum |x|^ord)^(1 / ord); the number of non-zero elements for ord = 0, the largest (smallest)
/// |x| for ord = inf (-inf). Where the norm is 0, its gradient is 0. `dtype` must not be narrower
/// than self's. Throws DTypeError unless self is floating, and IndexError for ord < 0 or ord = inf
/// without elements.
Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord = 2, IntList dims = {},
                          bool keepdim = false, std::optional<DType> dtype = std::nullopt);

/// Running sum along `dim`, in order.
Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt);
/// Running product along `dim`, in order. Gradients are exact also where elements are zero.
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt);
/// h[i] = decay[i] * h[i - 1] + input[i] along `dim`, starting from h[-1] = 0; both have one shape
/// and floating dtype.
Tensor linear_recurrence(const Tensor& decay, const Tensor& input, int64_t dim);

// Functions that return a value on the host. They wait for the device.

/// Same shape and equal elements; NaN differs from everything. Throws DTypeError when dtypes
/// differ.
bool equal(const Tensor& self, const Tensor& other);
/// Whether the only element is non-zero. Throws ShapeError unless there is exactly one.
bool is_nonzero(const Tensor& self);

}  // namespace lockstep
