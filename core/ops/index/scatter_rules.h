#pragma once

#include <optional>

#include "core/tensor/outputs.h"

namespace lockstep {

/// Reductions of scatter_reduce.
enum class ScatterReduction : uint8_t { kSum, kProd, kMean, kAmax, kAmin };

namespace rules {

// Shape rules of core/ops/index/scatter.cc, defined there; kernels use the parser.

/// Parses "sum", "prod", "mean", "amax" or "max", "amin" or "min". Throws Error for other names.
ScatterReduction scatter_reduction(std::string_view reduce);

Outputs scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Outputs scatter_value(const Tensor& self, int64_t dim, const Tensor& index, Scalar value);
Outputs scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                       std::string_view reduce, bool include_self);
Outputs index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
Outputs index_fill(const Tensor& self, int64_t dim, const Tensor& index, Scalar value);

}  // namespace rules
}  // namespace lockstep
