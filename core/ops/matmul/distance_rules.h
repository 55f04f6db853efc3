#pragma once

#include <optional>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/matmul/distance.cc, defined in core/ops/matmul/distance_rules.cc.

Outputs cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode);
Outputs pdist(const Tensor& self, double p);

}  // namespace lockstep::rules
