#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// All combinations of r elements of the vector self, in the order of their positions: [count, r].
/// With replacement an element may be taken several times. r = 0 gives an empty vector.
Tensor combinations(const Tensor& self, int64_t r = 2, bool with_replacement = false);
/// The rows and the columns, [2, count], of the elements of the lower (upper) triangle of a matrix,
/// in row-major order; `offset` moves its edge as `diagonal` does in tril and triu. int64 unless
/// the options say otherwise.
Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = {});
Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = {});

}  // namespace lockstep
