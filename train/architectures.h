#pragma once

#include <memory>
#include <string_view>

#include "nn/classifier.h"
#include "nn/language_model.h"
#include "nn/scaling/mup.h"

namespace lockstep::config {
class ModelConfig;
}

/// How the models that configs name are built: one row an architecture, beside the rows of
/// configs/architectures.h.
namespace lockstep::train {

/// The model of a resolved message, of its kind, with fresh weights from the thread's default
/// generator, on default_device(). Throws ConfigError for values that no model can have.
std::unique_ptr<nn::LanguageModel> make_language_model(const config::ModelConfig& model);
std::unique_ptr<nn::Classifier> make_classifier(const config::ModelConfig& model);

/// What model.mup makes of the model relative to its base model; the default without it.
nn::Mup mup_of(const config::ModelConfig& model);

/// Whether the parameter `name` belongs to a layer between the first and the last of the model: a
/// block of a transformer or of a residual network, or a hidden layer of a perceptron that reads a
/// hidden layer.
bool is_hidden_layer(const config::ModelConfig& model, std::string_view name);

}  // namespace lockstep::train
