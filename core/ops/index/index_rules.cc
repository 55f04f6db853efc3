#include "core/ops/index/index_rules.h"

#include "core/base/check.h"
#include "core/ops/index/index_checks.h"

namespace lockstep::rules {

Outputs embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  LS_CHECK(weight.dim() == 2, ShapeError,
           "[embedding] the weight must be a matrix [rows, width], got shape {}.", weight.shape());
  check_index("embedding", indices);
  Dims sizes = to_dims(indices.sizes());
  sizes.push_back(weight.sizes()[1]);
  return one(std::move(sizes), weight.dtype());
}

Outputs embedding_dense_backward(const Tensor& grad_output, const Tensor& indices,
                                 int64_t num_weights, int64_t, bool) {
  check_index("embedding_dense_backward", indices);
  const int64_t rank = indices.dim();
  bool fits = grad_output.dim() == rank + 1;
  for (int64_t i = 0; fits && i < rank; ++i) fits = grad_output.sizes()[i] == indices.sizes()[i];
  LS_CHECK(fits, ShapeError,
           "[embedding_dense_backward] expected a gradient of shape {} plus one dimension, got {}.",
           indices.shape(), grad_output.shape());
  LS_CHECK(is_floating(grad_output.dtype()), DTypeError,
           "[embedding_dense_backward] expected a floating gradient, got {}.",
           to_string(grad_output.dtype()));
  return one({num_weights, grad_output.sizes()[rank]}, grad_output.dtype());
}

Outputs index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  check_index("index_select", index);
  LS_CHECK(index.dim() <= 1, ShapeError,
           "[index_select] the index must have one dimension, got shape {}. Use flatten().",
           index.shape());
  const int64_t d = wrap_dim("index_select", dim, self.dim());
  LS_CHECK(self.dim() > 0 || index.numel() == 1, IndexError,
           "[index_select] a 0-d tensor has one element: expected one index, got {}.",
           index.numel());
  Dims sizes = to_dims(self.sizes());
  if (self.dim() > 0) sizes[d] = index.numel();
  return one(std::move(sizes), self.dtype());
}

Outputs index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  Scalar) {
  check_index("index_add", index);
  check_same_dtype("index_add", self, source);
  LS_CHECK(index.dim() <= 1, ShapeError,
           "[index_add] the index must have one dimension, got shape {}. Use flatten().",
           index.shape());
  const int64_t d = wrap_dim("index_add", dim, self.dim());
  Dims wanted = to_dims(self.sizes());
  if (self.dim() > 0) wanted[d] = index.numel();
  const bool one_each = self.dim() == 0 && source.numel() == 1 && index.numel() == 1;
  LS_CHECK(one_each || same(source.sizes(), wanted), ShapeError,
           "[index_add] the source does not fit: expected shape {}, got {}.", to_string(wanted),
           source.shape());
  return one(to_dims(self.sizes()), self.dtype());
}

Outputs gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  check_places("gather", index);
  const int64_t d = wrap_dim("gather", dim, self.dim());
  check_covers("gather", "self", self, index, d);
  return one(to_dims(index.sizes()), self.dtype());
}

Outputs scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_places("scatter_add", index);
  check_same_dtype("scatter_add", self, src);
  const int64_t d = wrap_dim("scatter_add", dim, self.dim());
  check_covers("scatter_add", "self", self, index, d);
  check_covers("scatter_add", "src", src, index, -1);
  return one(to_dims(self.sizes()), self.dtype());
}

Outputs masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  LS_CHECK(mask.dtype() == DType::kBool, DTypeError,
           "[masked_scatter] expected a bool mask, got {}.", to_string(mask.dtype()));
  check_same_dtype("masked_scatter", self, source);
  return one(broadcast("masked_scatter", self.sizes(), mask.sizes()), self.dtype());
}

Outputs triangle(const Tensor& self, int64_t) {
  LS_CHECK(self.dim() >= 2, ShapeError,
           "[tril/triu] expected at least two dimensions, got shape {}.", self.shape());
  return one(to_dims(self.sizes()), self.dtype());
}

}  // namespace lockstep::rules
