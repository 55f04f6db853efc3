#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/factory/copy.cc, defined in core/ops/factory/copy_rules.cc.

Outputs copy(const Tensor& self, const Tensor& src, bool non_blocking);
Outputs clone(const Tensor& self, std::optional<MemoryFormat> memory_format);
Outputs to_copy(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
                std::optional<MemoryFormat> memory_format);
Outputs fill(const Tensor& self, Scalar value);
Outputs zero(const Tensor& self);

}  // namespace lockstep::rules
