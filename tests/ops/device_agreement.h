#pragma once

#include "core/tensor/device.h"

namespace lockstep {

/// Every sample of every functional operator: results on `device` have the bits, the strides and
/// the device that they should. Failures are the running test's.
void expect_results_of_cpu(Device device);
/// Every in-place and out= form writes there what it writes on the cpu, or refuses likewise.
void expect_writes_of_cpu(Device device);

}  // namespace lockstep
