#pragma once

#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that write along one dimension at given indices (int64, in scatter also int32);
// scatter_add and index_add are in index.h. An index out of range throws IndexError. Several values
// for one element are written in the order of the index, for any number of threads.

/// A copy of self with result[i][index[i][j][k]][k] = src[i][j][k] for dim = 1, and so on; of
/// several values for one element the last stays. The index is no larger than src, nor, outside
/// `dim`, than self. The gradient of src is gathered at the index, also for overwritten values.
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
/// A copy of self in which each indexed element is reduced with the elements of src that go there:
/// `reduce` is "sum", "prod", "mean", "amax" or "amin". Without `include_self` the old value of
/// such an element does not take part. Equal extrema share the gradient.
Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, bool include_self = true);

/// A copy of self in which each slice at `index` (a vector) along `dim` is reduced with the slices
/// of `source` that go there: `reduce` is "prod", "mean", "amax" or "amin". Otherwise as
/// scatter_reduce.
Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self = true);
/// A copy of self with the slices of `source` written at `index` along `dim`; of several slices for
/// one index the last stays.
Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
/// A copy of self with the slices at `index` along `dim` filled with `value`. Negative indices
/// count from the end.
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value);
/// A copy of self with the 0-d `value`, cast to self's dtype, where the bool mask is true.
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value);

/// gather with self and indices (int64, negative ones count from the end) broadcast together
/// outside `dim`. Without `dim` both are flattened, and no index may be negative.
Tensor take_along_dim(const Tensor& self, const Tensor& indices,
                      std::optional<int64_t> dim = std::nullopt);

}  // namespace lockstep
