#pragma once

#include <memory>

#include "data/token_source.h"
#include "nn/classifier.h"
#include "nn/language_model.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/step_share.h"
#include "train/task.h"

namespace lockstep::config {
class RunConfig;
}

/// From a resolved config to the parts of a run: the one place that reads model, data, optimizer
/// and schedule messages.
namespace lockstep::train {

/// The language model of `config` with the weights that the config names or, without any, with new
/// ones that are a function of the config's seed. Throws CheckpointError as load_weights does.
std::unique_ptr<nn::LanguageModel> build_model(const config::RunConfig& config);
/// The same for a classifier.
std::unique_ptr<nn::Classifier> build_classifier(const config::RunConfig& config);
/// Which of the two the config describes.
bool is_classifier(const config::RunConfig& config);
/// The data of a language model. Throws DataError when the text cannot be read or is too short.
std::unique_ptr<TokenSource> build_source(const config::RunConfig& config);
/// The device of the run. Throws ConfigError when this machine has none of that name.
Device device_of(const config::RunConfig& config);
/// Model and data together, for either kind; the model is on the run's device.
std::unique_ptr<Task> build_task(const config::RunConfig& config);
/// The same for one of several ranks.
std::unique_ptr<Task> build_task(const config::RunConfig& config, const StepShare& share);
std::unique_ptr<Optimizer> build_optimizer(const config::RunConfig& config,
                                           const std::vector<nn::NamedParameter>& parameters);
Schedule build_schedule(const config::RunConfig& config);
/// Positions of a training sequence.
int64_t sequence_length(const config::RunConfig& config);

}  // namespace lockstep::train
