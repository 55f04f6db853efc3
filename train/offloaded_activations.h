#pragma once

#include <optional>

#include "autograd/host_activations.h"
#include "nn/module.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// What keeps the activations of a run on the host where `train.offload_activations` asks for it;
/// otherwise nullopt. `device` is the model's: the config's, or meta in a plan. Throws ConfigError
/// where the config's device has no memory of its own.
std::optional<HostActivations> offloaded_activations(const config::RunConfig& config,
                                                     const nn::Module& model, Device device);

/// Hooks around a forward: those of `host`, or none.
std::optional<SavedTensorHooksGuard> guard_of(const std::optional<HostActivations>& host);

}  // namespace lockstep::train
