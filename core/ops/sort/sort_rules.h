#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/sort/sort.cc and search.cc, defined in core/ops/sort/sort_rules.cc.

Outputs sort(const Tensor& self, int64_t dim, bool descending);
Outputs topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted);
Outputs kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim);
/// Rule of median and nanmedian over all elements.
Outputs median(const Tensor& self);
Outputs median_dim(const Tensor& self, int64_t dim, bool keepdim);
Outputs mode(const Tensor& self, int64_t dim, bool keepdim);
Outputs searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                     std::optional<std::string_view> side, OptionalTensor sorter);

}  // namespace lockstep::rules
