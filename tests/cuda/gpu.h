#pragma once

#include <string>
#include <vector>

#include "core/cuda/availability.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"
#include "tests/conformance/elements.h"

namespace lockstep {

/// The GPU of these tests, which is an emulated one.
inline constexpr Device kGpu{DeviceType::kCUDA, 0};

/// Whether it is: a real one does not tell what is queued on it (QueuedWork).
inline bool is_emulated() {
  const std::vector<std::string> devices = cuda::availability().devices;
  return !devices.empty() && devices.front().starts_with("Emulated GPU");
}

/// The elements of a tensor on any device.
inline std::vector<float> floats_of(const Tensor& tensor) {
  return elements_as<float>(tensor.to(kCPU));
}

}  // namespace lockstep
