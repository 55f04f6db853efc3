#pragma once

#include <vector>

#include "core/tensor/device.h"
#include "core/tensor/tensor.h"
#include "tests/conformance/elements.h"

namespace lockstep {

/// The GPU of these tests, which is an emulated one.
inline constexpr Device kGpu{DeviceType::kCUDA, 0};

/// The elements of a tensor on any device.
inline std::vector<float> floats_of(const Tensor& tensor) {
  return elements_as<float>(tensor.to(kCPU));
}

}  // namespace lockstep
