#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

// Indexing with tensors, as `x[i, :, j]` means it. `indices[d]` is for dimension d: an int64 or
// int32 tensor, or an undefined one for all of a dimension. A bool (or uint8) mask stands for the
// coordinates at which it is true and covers as many dimensions as it has. Integer indices
// broadcast together and may be negative; their shape takes the place of the first indexed
// dimension when the indexed ones are neighbours, else the front. Throws IndexError naming the
// index and the size.

/// The elements at `indices`.
Tensor index(const Tensor& self, OptionalTensorList indices);
/// self with `values`, broadcast to the shape of index(self, indices) and of self's dtype, put
/// there: added when `accumulate`, else the last of those for one place stays. In order, for any
/// number of threads.
Tensor index_put(const Tensor& self, OptionalTensorList indices, const Tensor& values,
                 bool accumulate = false);
const Tensor& index_put_(const Tensor& self, OptionalTensorList indices, const Tensor& values,
                         bool accumulate = false);

}  // namespace lockstep
