#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that make fewer elements out of many. Dimensions may be negative (-1 is the last); an
// empty list of them means all; `keepdim` leaves a dimension of size 1 where one was reduced.
//
// Floating-point results are summed in fixed blocks, so they have the same bits for any number of
// threads. Integers and bools sum to int64. `dtype` is the dtype to compute and return; without it
// floating inputs keep theirs.

Tensor sum(const Tensor& self);
Tensor sum(const Tensor& self, IntList dims, bool keepdim = false,
           std::optional<DType> dtype = std::nullopt);
/// The mean of nothing is NaN. Throws DTypeError for an integer result.
Tensor mean(const Tensor& self);
Tensor mean(const Tensor& self, IntList dims, bool keepdim = false,
            std::optional<DType> dtype = std::nullopt);
/// Sums self over the dimensions that were stretched to make its shape from `sizes`.
/// Throws ShapeError when `sizes` does not stretch to self's shape.
Tensor sum_to_size(const Tensor& self, IntList sizes);

/// Largest / smallest element. NaN wins. Throws IndexError when there is nothing to choose from.
/// Where several elements are equal, each gets an equal part of the gradient.
Tensor amax(const Tensor& self, IntList dims = {}, bool keepdim = false);
Tensor amin(const Tensor& self, IntList dims = {}, bool keepdim = false);
Tensor max(const Tensor& self);
Tensor min(const Tensor& self);
/// Values and their int64 indices along `dim`; the first of equals, and the first NaN, is taken.
/// The whole gradient goes to the element that was taken.
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

/// The product of all elements, or along one dimension; 1 of none. Integers and bools multiply as
/// int64. Gradients are exact where elements are zero.
Tensor prod(const Tensor& self);
Tensor prod(const Tensor& self, int64_t dim, bool keepdim = false,
            std::optional<DType> dtype = std::nullopt);

/// Variance and standard deviation: the sum of squared distances from the mean, divided by
/// max(0, count - correction); `correction` defaults to 1 (Bessel). With nothing to divide by the
/// result is NaN or infinite. Throws DTypeError unless self is floating.
Tensor var(const Tensor& self, IntList dims = {}, std::optional<Scalar> correction = std::nullopt,
           bool keepdim = false);
/// The gradient where the result is 0 is 0.
Tensor std(const Tensor& self, IntList dims = {}, std::optional<Scalar> correction = std::nullopt,
           bool keepdim = false);
/// Variance and mean from one reading.
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, IntList dims = {},
                                    std::optional<Scalar> correction = std::nullopt,
                                    bool keepdim = false);

/// log(sum(exp(self))) without overflow; -inf of nothing. Integers become float32.
Tensor logsumexp(const Tensor& self, IntList dims, bool keepdim = false);
/// The same of the elements up to each along `dim`. Floating dtypes only.
Tensor logcumsumexp(const Tensor& self, int64_t dim);
/// (sum |x|^ord)^(1 / ord); the number of non-zero elements for ord = 0, the largest (smallest)
/// |x| for ord = inf (-inf). The gradient where the norm is 0 is 0. `dtype` must not be narrower
/// than self's. Throws DTypeError unless floating, IndexError where ord < 0 or inf has nothing to
/// choose from.
Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord = 2, IntList dims = {},
                          bool keepdim = false, std::optional<DType> dtype = std::nullopt);

/// Running sum along `dim`, in order.
Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt);
/// Running product along `dim`, in order. Gradients are exact where elements are zero.
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt);
/// h[i] = decay[i] * h[i - 1] + input[i] along `dim`, starting from h[-1] = 0; both have one shape
/// and floating dtype.
Tensor linear_recurrence(const Tensor& decay, const Tensor& input, int64_t dim);

// Values on the host. These wait for the device.

/// Same shape and equal elements; NaN differs from everything. Throws DTypeError when dtypes
/// differ.
bool equal(const Tensor& self, const Tensor& other);
/// Truth of the only element. Throws ShapeError unless there is exactly one.
bool is_nonzero(const Tensor& self);

}  // namespace lockstep
