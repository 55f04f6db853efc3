#pragma once

#include <optional>
#include <tuple>

#include "core/tensor.h"

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

/// Running sum along `dim`, in order.
Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt);

// Values on the host. These wait for the device.

/// Same shape and equal elements; NaN differs from everything. Throws DTypeError when dtypes
/// differ.
bool equal(const Tensor& self, const Tensor& other);
/// Truth of the only element. Throws ShapeError unless there is exactly one.
bool is_nonzero(const Tensor& self);

}  // namespace lockstep
