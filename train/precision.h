#pragma once

#include <cstdint>

#include "autograd/autocast.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Arithmetic of a run's forward passes; see configs/run.proto. Weights, gradients and optimizer
/// state are f32 in each.
enum class Precision : uint8_t { kF32, kBF16Mixed, kF16Mixed };

Precision precision_of(const config::RunConfig& config);

/// The region in which a run's model computes losses on a device of this type, in training and in
/// evaluation. One of F32 leaves everything as it is.
AutocastGuard autocast_region(Precision precision, DeviceType type);

}  // namespace lockstep::train
