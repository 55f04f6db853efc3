#include "train/trained_parts.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "nn/adapters/lora.h"
#include "nn/language_model.h"
#include "train/architectures.h"
#include "train/weights.h"
#include "train/weights/peft_adapters.h"

namespace lockstep::train {

namespace {

using Patterns = google::protobuf::RepeatedPtrField<std::string>;

/// Whether the pattern fits the name, or the name of a module that the parameter is in.
bool fits_parameter(std::string_view name, std::string_view pattern) {
  for (size_t end = name.size(); end != name.npos; end = name.rfind('.', end - 1)) {
    if (fits_pattern(name.substr(0, end), pattern)) return true;
    if (end == 0) break;
  }
  return false;
}

[[noreturn]] void throw_no_match(std::string_view field, const char* of, const std::string& pattern,
                                 const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  const std::span<const std::string> shown(names.data(), std::min(names.size(), kMost));
  throw ConfigError(fmt::format("[{}] no {} is named {:?}: expected a pattern of {}{}.", field, of,
                                pattern, fmt::join(shown, ", "),
                                names.size() > kMost ? ", ..." : ""));
}

/// Throws ConfigError for the first pattern that fits none of `names` by `fits`.
template <class Fits>
void check_patterns_fit(std::string_view field, const char* of, const Patterns& patterns,
                        const std::vector<std::string>& names, const Fits& fits) {
  for (const std::string& pattern : patterns) {
    const auto one_fits = [&](const std::string& name) { return fits(name, pattern); };
    if (std::ranges::none_of(names, one_fits)) throw_no_match(field, of, pattern, names);
  }
}

/// The layers that can have an adapter: a language model reads the weight of its output layer by
/// itself.
std::vector<std::string> possible_targets(const nn::Module& model) {
  const auto* const language = dynamic_cast<const nn::LanguageModel*>(&model);
  std::vector<std::string> paths;
  model.for_each([&](const nn::Module& each) {
    const auto* const layer = dynamic_cast<const nn::Linear*>(&each);
    if (layer == nullptr) return;
    if (language != nullptr && layer->weight.is_same(language->classifier())) return;
    paths.push_back(layer->path());
  });
  return paths;
}

void add_adapters(nn::Module& model, const config::LoraConfig& config) {
  const std::vector<std::string> paths = possible_targets(model);
  check_patterns_fit("model.lora.targets", "layer that can have an adapter", config.targets(),
                     paths, fits_pattern);
  model.freeze();
  nn::add_lora(model,
               [&](std::string_view path) {
                 return std::ranges::find(paths, path) != paths.end() &&
                        std::ranges::any_of(config.targets(), [&](const std::string& pattern) {
                          return fits_pattern(path, pattern);
                        });
               },
               {.rank = config.rank(), .alpha = config.alpha(), .dropout = config.dropout()});
}

/// Adapters for the layers of the folder that model.lora.weights names, without its values.
void add_saved_adapters(nn::Module& model, const config::LoraConfig& config) {
  const PeftAdapters saved(config.weights());
  LS_CHECK(saved.rank() == config.rank() && saved.alpha() == config.alpha(), ConfigError,
           "[model.lora.weights] the adapters in {} have rank {} and alpha {}: got {} and {}. Set "
           "model.lora.rank and model.lora.alpha to theirs.",
           config.weights(), saved.rank(), saved.alpha(), config.rank(), config.alpha());
  model.freeze();
  nn::add_lora(model, [&](std::string_view path) { return saved.contains(model, path); },
               {.rank = config.rank(), .alpha = config.alpha(), .dropout = config.dropout()});
}

void freeze(nn::Module& model, const Patterns& patterns) {
  std::vector<std::string> names;
  for (const nn::NamedParameter& each : model.named_parameters()) names.push_back(each.name);
  check_patterns_fit("model.freeze", "parameter or module", patterns, names, fits_parameter);
  for (const nn::NamedParameter& each : model.named_parameters()) {
    if (std::ranges::any_of(patterns, [&](const std::string& pattern) {
          return fits_parameter(each.name, pattern);
        })) {
      each.tensor.set_requires_grad(false);
    }
  }
  LS_CHECK(std::ranges::any_of(model.parameters(),
                               [](const Tensor& each) { return each.requires_grad(); }),
           ConfigError,
           "[model.freeze] every parameter is frozen: expected one to train. Leave out a pattern "
           "of {}.",
           fmt::join(patterns, ", "));
}

nn::UpdateKind update_kind(const config::OptimizerConfig& optimizer, nn::WidthRole role) {
  if (optimizer.has_sgd()) return nn::UpdateKind::kGradient;
  if (optimizer.has_muon() && role == nn::WidthRole::kMatrix) return nn::UpdateKind::kOrthogonal;
  return nn::UpdateKind::kElementwise;
}

}  // namespace

bool fits_pattern(std::string_view name, std::string_view pattern) {
  const std::string whole(name);
  return ::fnmatch(std::string(pattern).c_str(), whole.c_str(), 0) == 0 ||
         ::fnmatch(fmt::format("*.{}", pattern).c_str(), whole.c_str(), 0) == 0;
}

void choose_trained_parts(nn::Module& model, const config::ModelConfig& config) {
  if (config.has_lora()) {
    const bool is_new = config.lora().weights().empty();
    (is_new ? add_adapters : add_saved_adapters)(model, config.lora());
  }
  freeze(model, config.freeze());
}

void load_initial_weights(nn::Module& model, const config::ModelConfig& config) {
  if (!config.weights().empty()) load_weights(model, config.weights());
  if (!config.lora().weights().empty()) PeftAdapters(config.lora().weights()).load_into(model);
}

ParameterGroups parameter_groups(const config::OptimizerConfig& config,
                                 const std::vector<std::string>& names) {
  ParameterGroups result;
  for (const config::ParameterGroup& each : config.groups()) {
    result.groups.push_back({each.learning_rate_factor(), each.weight_decay()});
  }
  result.groups.emplace_back();
  for (const std::string& name : names) {
    const auto group = std::ranges::find_if(config.groups(), [&](const auto& each) {
      return std::ranges::any_of(each.parameters(), [&](const std::string& pattern) {
        return fits_parameter(name, pattern);
      });
    });
    result.group_of.push_back(static_cast<size_t>(group - config.groups().begin()));
  }
  return result;
}

ParameterGroups with_mup(ParameterGroups groups, const config::RunConfig& config,
                         const std::vector<nn::NamedParameter>& parameters) {
  const nn::Mup mup = mup_of(config.model());
  // Each group becomes two, of vectors and, `count` further, of matrices.
  const size_t count = groups.groups.size();
  std::vector<Optimizer::Group> scaled;
  for (const nn::WidthRole role : {nn::WidthRole::kVector, nn::WidthRole::kMatrix}) {
    const nn::UpdateFactors by = mup.update_of(role, update_kind(config.optimizer(), role));
    for (const Optimizer::Group& each : groups.groups) {
      const double decay = each.weight_decay.value_or(config.optimizer().weight_decay());
      scaled.push_back({each.rate_factor * by.rate, decay * by.decay});
    }
  }
  groups.groups = std::move(scaled);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const nn::NamedParameter& each = parameters[i];
    const bool is_matrix = each.tensor.dim() >= 2 && is_hidden_layer(config.model(), each.name);
    if (is_matrix) groups.group_of[i] += count;
  }
  return groups;
}

void check_parameter_groups(const nn::Module& model, const config::OptimizerConfig& config) {
  std::vector<std::string> names;
  for (const nn::NamedParameter& each : model.named_parameters()) {
    if (each.tensor.requires_grad()) names.push_back(each.name);
  }
  for (const config::ParameterGroup& each : config.groups()) {
    check_patterns_fit("optimizer.groups.parameters", "parameter or module that is trained",
                       each.parameters(), names, fits_parameter);
  }
}

}  // namespace lockstep::train
