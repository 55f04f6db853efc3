#include "train/offloaded_activations.h"

#include "configs/run.pb.h"
#include "core/base/check.h"

namespace lockstep::train {

std::optional<HostActivations> offloaded_activations(const config::RunConfig& config,
                                                     const nn::Module& model, Device device) {
  if (!config.train().offload_activations()) return std::nullopt;
  LS_CHECK(is_asynchronous(parse_device(config.device()).type), ConfigError,
           "[train] train.offload_activations moves activations from a device with memory of its "
           "own to the host: expected such a device, got \"{}\". Leave it out.",
           config.device());
  return std::optional<HostActivations>(std::in_place, device, model.parameters());
}

std::optional<SavedTensorHooksGuard> guard_of(const std::optional<HostActivations>& host) {
  if (!host) return std::nullopt;
  return std::optional<SavedTensorHooksGuard>(std::in_place, host->hooks());
}

}  // namespace lockstep::train
