#pragma once

#include "core/tensor/device.h"

namespace lockstep {

/// Checks every sample of every functional operator: results on `device` have the bits and strides
/// of those on the CPU, and the right device. Reports failures to the running test.
void expect_results_of_cpu(Device device);
/// Checks that every in-place and out= form writes what it writes on the CPU, or throws where that
/// throws.
void expect_writes_of_cpu(Device device);

}  // namespace lockstep
