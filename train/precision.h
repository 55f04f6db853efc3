#pragma once

#include <cstdint>

#include "autograd/autocast.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Arithmetic of a run's forward passes; see configs/run.proto. Weights, gradients and optimizer
/// state are always f32.
enum class Precision : uint8_t { kF32, kBF16Mixed, kF16Mixed };

Precision precision_of(const config::RunConfig& config);

/// The autocast region for forward passes on a device of this type, in training and in evaluation.
/// With kF32 it has no effect.
AutocastGuard autocast_region(Precision precision, DeviceType type);

}  // namespace lockstep::train
