#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/reduce/reduce.cc, truth.cc, product.cc, moments.cc and vector_norm.cc,
// defined in core/ops/reduce/reduce_rules.cc.

Outputs sum(const Tensor& self, std::optional<DType> dtype);
Outputs sum_dims(const Tensor& self, std::optional<IntList> dims, bool keepdim,
                 std::optional<DType> dtype);
Outputs mean(const Tensor& self, std::optional<DType> dtype);
Outputs mean_dims(const Tensor& self, std::optional<IntList> dims, bool keepdim,
                  std::optional<DType> dtype);
Outputs amax(const Tensor& self, IntList dims, bool keepdim);
Outputs amin(const Tensor& self, IntList dims, bool keepdim);
Outputs argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim);
Outputs argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim);
/// Rule of max and min over all elements.
Outputs extreme_of_all(const Tensor& self);
Outputs max_dim(const Tensor& self, int64_t dim, bool keepdim);
Outputs min_dim(const Tensor& self, int64_t dim, bool keepdim);
Outputs truth(const Tensor& self);
Outputs truth_dim(const Tensor& self, int64_t dim, bool keepdim);
Outputs truth_dims(const Tensor& self, std::optional<IntList> dims, bool keepdim);
Outputs cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype);
Outputs cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype);
Outputs linear_recurrence(const Tensor& decay, const Tensor& input, int64_t dim);
Outputs prod(const Tensor& self, std::optional<DType> dtype);
Outputs prod_dim(const Tensor& self, int64_t dim, bool keepdim, std::optional<DType> dtype);
/// Rule of var and std.
Outputs deviation(const Tensor& self, std::optional<IntList> dims, std::optional<Scalar> correction,
                  bool keepdim);
Outputs var_mean(const Tensor& self, std::optional<IntList> dims, std::optional<Scalar> correction,
                 bool keepdim);
Outputs logcumsumexp(const Tensor& self, int64_t dim);
Outputs logsumexp(const Tensor& self, IntList dims, bool keepdim);
Outputs vector_norm(const Tensor& self, Scalar ord, std::optional<IntList> dims, bool keepdim,
                    std::optional<DType> dtype);

}  // namespace lockstep::rules
