#pragma once

#include <memory>

#include "nn/language_model.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/token_source.h"

namespace lockstep::config {
class RunConfig;
}

/// From a resolved config to the parts of a run: the one place that reads model, data, optimizer
/// and schedule messages.
namespace lockstep::train {

/// A freshly initialised model; its weights are a function of the config's seed.
std::unique_ptr<nn::LanguageModel> build_model(const config::RunConfig& config);
/// Throws DataError when the text cannot be read or is too short.
std::unique_ptr<TokenSource> build_source(const config::RunConfig& config);
std::unique_ptr<Optimizer> build_optimizer(const config::RunConfig& config,
                                           std::vector<Tensor> parameters);
Schedule build_schedule(const config::RunConfig& config);
/// Positions of a training sequence.
int64_t sequence_length(const config::RunConfig& config);

}  // namespace lockstep::train
