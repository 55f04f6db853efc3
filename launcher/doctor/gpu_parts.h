#pragma once

#include <vector>

#include "launcher/doctor/bounded_parts.h"

namespace lockstep::launcher {

/// The examination of this machine's GPUs: what NVML tells of each at rest, then rates of each,
/// each with the clocks under load, then copies between each two and NCCL's all_reduce over all.
/// There must be one.
std::vector<Part> gpu_parts();

}  // namespace lockstep::launcher
