#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/index/index.cc, defined in core/ops/index/index_rules.cc.

Outputs embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx,
                  bool scale_grad_by_freq, bool sparse);
Outputs embedding_dense_backward(const Tensor& grad_output, const Tensor& indices,
                                 int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq);
Outputs index_select(const Tensor& self, int64_t dim, const Tensor& index);
Outputs index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  Scalar alpha);
Outputs gather(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad);
Outputs scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Outputs masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source);
Outputs triangle(const Tensor& self, int64_t diagonal);

}  // namespace lockstep::rules
