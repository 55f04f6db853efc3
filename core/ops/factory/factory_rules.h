#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/factory/factory.cc, defined in core/ops/factory/factory_rules.cc. The
// wrapper handles the device option; layout and pin_memory exist for ATen's schemas and have no
// effect yet.

Outputs empty(IntList size, std::optional<DType> dtype, std::optional<Layout> layout,
              std::optional<Device> device, std::optional<bool> pin_memory,
              std::optional<MemoryFormat> memory_format);
/// Rule of zeros and ones.
Outputs filled(IntList size, std::optional<DType> dtype, std::optional<Layout> layout,
               std::optional<Device> device, std::optional<bool> pin_memory);
Outputs full(IntList size, Scalar fill_value, std::optional<DType> dtype,
             std::optional<Layout> layout, std::optional<Device> device,
             std::optional<bool> pin_memory);
Outputs scalar_tensor(Scalar s, std::optional<DType> dtype, std::optional<Layout> layout,
                      std::optional<Device> device, std::optional<bool> pin_memory);
Outputs arange(Scalar start, Scalar end, Scalar step, std::optional<DType> dtype,
               std::optional<Layout> layout, std::optional<Device> device,
               std::optional<bool> pin_memory);
/// Rule of empty_like, zeros_like and ones_like.
Outputs like(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin_memory,
             std::optional<MemoryFormat> memory_format);
Outputs full_like(const Tensor& self, Scalar fill_value, std::optional<DType> dtype,
                  std::optional<Layout> layout, std::optional<Device> device,
                  std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format);

}  // namespace lockstep::rules
