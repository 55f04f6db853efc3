#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that read or write at indices given by other tensors. Indices are int64 or int32; an
// index out of range throws IndexError naming operator, index and range.

/// Rows of `weight` [rows, width] at `indices` [...]: [..., width]. The gradient of row
/// `padding_idx` is zero; -1: no such row.
Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx = -1,
                 bool scale_grad_by_freq = false, bool sparse = false);
/// Sums `grad_output` [..., width] into the rows of a [num_weights, width] tensor of zeros at
/// `indices` [...], in the order of the indices for any number of threads.
Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices,
                                int64_t num_weights, int64_t padding_idx = -1,
                                bool scale_grad_by_freq = false);
/// embedding_dense_backward, written into `out`.
const Tensor& embedding_dense_backward_out(const Tensor& out, const Tensor& grad_output,
                                           const Tensor& indices, int64_t num_weights,
                                           int64_t padding_idx = -1,
                                           bool scale_grad_by_freq = false);
/// The gradient of embedding's weight: embedding_dense_backward with a derivative that includes the
/// factors of scale_grad_by_freq. The derivative of embedding_dense_backward ignores them, as
/// ATen's does.
Tensor embedding_gradient(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                          int64_t padding_idx, bool scale_grad_by_freq);
/// `self` [rows, width] plus the gradient of embedding's weight, each row's sum rounded before it
/// is added. Rows that `indices` do not name stay as they are. With `_` at the end in place.
Tensor _embedding_gradient_added(const Tensor& self, const Tensor& grad_output,
                                 const Tensor& indices, int64_t padding_idx,
                                 bool scale_grad_by_freq);
const Tensor& _embedding_gradient_added_(const Tensor& self, const Tensor& grad_output,
                                         const Tensor& indices, int64_t padding_idx,
                                         bool scale_grad_by_freq);

/// The slices of self at `index` (one dimension, or 0-d) along `dim`.
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index);
/// A copy of self with the slices of `source`, times `alpha`, added at `index` along `dim`.
Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha = 1);
/// result[i][j][k] = self[i][index[i][j][k]][k] for dim = 1, and so on. index has as many
/// dimensions as self and is no larger outside `dim`.
Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad = false);
/// A copy of self with result[i][index[i][j][k]][k] += src[i][j][k] for dim = 1, and so on;
/// additions happen in the order of the index.
Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);

/// Coordinates of the non-zero elements, [count, self.dim()] int64, in row-major order. Waits for
/// the device, since the number of elements sets the shape.
Tensor nonzero(const Tensor& self);
/// The elements where `mask` (bool, broadcast with self) is true, in row-major order. Waits for the
/// device.
Tensor masked_select(const Tensor& self, const Tensor& mask);
/// A copy of self with the elements of `source` written in order where `mask` is true.
Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source);

/// The lower / upper triangle of the matrices in the last two dimensions, other elements zero.
/// `diagonal` moves its edge up (positive) or down.
Tensor tril(const Tensor& self, int64_t diagonal = 0);
Tensor triu(const Tensor& self, int64_t diagonal = 0);

}  // namespace lockstep
