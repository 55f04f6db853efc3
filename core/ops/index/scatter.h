#pragma once

#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that write along one dimension at places given by an index (int64, in scatter also
// int32); those that add stand in index.h. An index outside its range throws IndexError. Where
// several values go to one place, they are taken in the order of the index, for any number of
// threads.

/// self with result[i][index[i][j][k]][k] = src[i][j][k] for dim = 1, and so on; of several for one
/// place the last stays. The index is no larger than src, nor, outside `dim`, than self. The
/// gradient of src is that of its place, also where another value stayed.
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
/// self with the elements of src for each place reduced: "sum", "prod", "mean", "amax" or "amin".
/// Without `include_self` the old element does not count where something arrives. Equal extrema
/// share the gradient.
Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, bool include_self = true);

/// self with the parts of `source` written at `index` along `dim`; the last of several stays.
Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
/// self with every element of the parts at `index` along `dim` set to `value`. Negative indices
/// count from the end.
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value);
/// self with the 0-d `value`, cast to its dtype, where the bool mask is true.
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value);

/// gather with self and indices (int64, negative ones from the end) broadcast together outside
/// `dim`. Without `dim` both are flattened, and no index may be negative.
Tensor take_along_dim(const Tensor& self, const Tensor& indices,
                      std::optional<int64_t> dim = std::nullopt);

}  // namespace lockstep
