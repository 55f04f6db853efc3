#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace lockstep {

// Distances between vectors: p-norms of differences for p >= 0 (0 counts differing elements, inf
// takes the largest). Where a distance is not differentiable its gradient is 0. Computed in f64.

/// x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim` of the broadcast arguments.
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim = 1, double eps = 1e-8);
/// Distances [..., n, m] from each row of x1 [..., n, d] to each row of x2 [..., m, d]; leading
/// sizes broadcast.
Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2);
/// Gradient of cdist's first argument; `cdist` is the forward result.
Tensor cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                      const Tensor& cdist);
/// Distances [n (n - 1) / 2] from each row of self [n, d] to each later row, in order.
Tensor pdist(const Tensor& self, double p = 2);
/// Gradient of pdist's argument; `pdist` is the forward result.
Tensor pdist_backward(const Tensor& grad, const Tensor& self, double p, const Tensor& pdist);

/// The p-norm of self - other, of any order that linalg_vector_norm takes; the arguments broadcast.
/// ATen calls it dist, which is a namespace here.
Tensor distance(const Tensor& self, const Tensor& other, const Scalar& p = 2);
/// p-norms of x1 - x2 + eps along the last dimension; the arguments broadcast.
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6,
                         bool keepdim = false);

}  // namespace lockstep
