#pragma once

#include <memory>

#include "data/token_source.h"
#include "nn/classifier.h"
#include "nn/language_model.h"
#include "train/optimizer/learning_rate.h"
#include "train/optimizer/optimizer.h"
#include "train/step_share.h"
#include "train/task.h"

namespace lockstep::config {
class RunConfig;
}

/// Builds the parts of a run from a resolved config: the only code that reads its model, data,
/// optimizer and schedule messages.
namespace lockstep::train {

/// The language model of `config`, with the weights that it names, or with new ones drawn from the
/// config's seed if it names none, and with adapters and frozen parameters (train/trained_parts.h).
/// Throws CheckpointError as load_weights does.
std::unique_ptr<nn::LanguageModel> build_model(const config::RunConfig& config);
/// The classifier of `config`; weights and errors as in build_model.
std::unique_ptr<nn::Classifier> build_classifier(const config::RunConfig& config);
/// Whether the config's model is a classifier; otherwise it is a language model.
bool is_classifier(const config::RunConfig& config);
/// The token source of a language model. Throws DataError if the text cannot be read or is too
/// short.
std::unique_ptr<TokenSource> build_source(const config::RunConfig& config);
/// The device of the run. Throws ConfigError if this machine has no device of that name.
Device device_of(const config::RunConfig& config);
/// Model and data together, for a language model or a classifier; the model is on the run's device.
std::unique_ptr<Task> build_task(const config::RunConfig& config);
/// As above, for a rank that does `share` of every step. If the config's strategy shards the model
/// over several ranks, new weights have no memory yet (nn/initial_values.h): the trainer gives each
/// rank its part of their values.
std::unique_ptr<Task> build_task(const config::RunConfig& config, const StepShare& share);
std::unique_ptr<Optimizer> build_optimizer(const config::RunConfig& config,
                                           const std::vector<nn::NamedParameter>& parameters);
LearningRateSchedule build_schedule(const config::RunConfig& config);
/// The loss that a language model is trained on.
nn::LossOptions loss_options(const config::RunConfig& config);
/// Positions of a training sequence.
int64_t sequence_length(const config::RunConfig& config);

}  // namespace lockstep::train
