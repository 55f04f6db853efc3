#pragma once

#include "core/tensor/outputs.h"

namespace lockstep {

/// Geometry of an indexing call: which dimensions are indexed and where the indices' shape goes.
struct IndexPlan {
  Dims index_sizes;         ///< the indices' common shape
  Dims result_sizes;        ///< shape of index(self, indices)
  uint64_t indexed = 0;     ///< bit d: dimension d has an index
  int64_t index_front = 0;  ///< dimension of the result at which the indices' shape begins
};

namespace rules {

// Shape rules of core/ops/index/advanced_index.cc, defined in
// core/ops/index/advanced_index_rules.cc.

/// Plans a call on a tensor of `sizes`. `shapes[d]` is the shape of the index of dimension d, null
/// where it has none.
IndexPlan plan_index(std::string_view op, IntList sizes, std::span<const IntList* const> shapes);

Outputs index(const Tensor& self, OptionalTensorList indices);
Outputs index_put(const Tensor& self, OptionalTensorList indices, const Tensor& values,
                  bool accumulate);

}  // namespace rules
}  // namespace lockstep
