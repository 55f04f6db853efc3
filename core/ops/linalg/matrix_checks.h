#pragma once

#include <string_view>

#include "core/tensor/outputs.h"

namespace lockstep {

/// The matrices with their last two dimensions exchanged.
Tensor transposed(const Tensor& matrices);
/// The identity [n, n] with the options of a tensor.
Tensor identity(int64_t n, TensorOptions options);
/// The sum of two gradients, of which an undefined one counts as zeros.
Tensor added(const Tensor& a, const Tensor& b);
/// Whether a derivative may follow, which needs vectors beside values. A sample of vmap does not
/// show whether its batch requires grad.
bool may_need_gradient(const Tensor& self);

namespace rules {

// What shape rules of linear algebra ask of batches of matrices [..., m, n].

/// Sizes of the batch.
IntList batch_sizes(const Tensor& matrices);
/// Sizes [batch..., rows, columns].
Dims matrix_sizes(IntList batch, int64_t rows, int64_t columns);
/// Throws ShapeError for fewer than two dimensions, DTypeError for a dtype that is not floating.
void require_matrices(std::string_view op, const Tensor& tensor);
/// require_matrices, and ShapeError for matrices that are not square.
void require_square(std::string_view op, const Tensor& tensor);
/// Throws DTypeError for two dtypes.
void require_one_dtype(std::string_view op, const Tensor& a, const Tensor& b);
/// Throws ShapeError unless b can stand on the right of a x = b, or of x a = b.
void require_system(std::string_view op, const Tensor& a, const Tensor& b, bool left);

}  // namespace rules

}  // namespace lockstep
