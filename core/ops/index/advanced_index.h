#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

// Advanced indexing, `x[i, :, j]` with tensors i and j. `indices[d]` applies to dimension d: an
// int64 or int32 tensor, or an undefined one for the whole dimension. A bool (or uint8) mask is
// replaced by the coordinates at which it is true and covers as many dimensions as it has. Integer
// indices broadcast together and may be negative; their shape replaces the indexed dimensions if
// these are adjacent, else it comes first. Throws IndexError naming the index and the size.

/// Reads the elements at `indices`.
Tensor index(const Tensor& self, OptionalTensorList indices);
/// A copy of self with `values`, of self's dtype and broadcast to the shape of index(self,
/// indices), written at `indices`; added if `accumulate`. Writes happen in order for any number of
/// threads: of several values for one element the last one stays.
Tensor index_put(const Tensor& self, OptionalTensorList indices, const Tensor& values,
                 bool accumulate = false);
const Tensor& index_put_(const Tensor& self, OptionalTensorList indices, const Tensor& values,
                         bool accumulate = false);

}  // namespace lockstep
