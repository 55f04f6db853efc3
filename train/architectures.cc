#include "train/architectures.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "configs/architectures.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"
#include "nn/models/mlp.h"
#include "nn/models/resnet.h"

namespace lockstep::train {

namespace {

std::unique_ptr<nn::LanguageModel> build_gpt2(const config::ModelConfig& model) {
  const config::Gpt2Config& from = model.gpt2();
  nn::Gpt2Options options;
  options.vocabulary = from.vocab_size();
  options.context_length = from.context_length();
  options.layers = from.layers();
  options.heads = from.heads();
  options.width = from.width();
  options.dropout = from.dropout();
  options.epsilon = from.layer_norm_epsilon();
  options.mup = mup_of(model);
  return std::make_unique<nn::Gpt2>(options);
}

nn::RopeScaling rope_scaling(const config::RopeScaling& from) {
  if (from.has_linear()) return nn::LinearRopeScaling{from.linear().factor()};
  if (from.has_llama3()) {
    const config::Llama3RopeScaling& by = from.llama3();
    return nn::Llama3RopeScaling{by.factor(), by.low_freq_factor(), by.high_freq_factor(),
                                 by.original_context_length()};
  }
  if (from.has_yarn()) {
    const config::YarnRopeScaling& by = from.yarn();
    return nn::YarnRopeScaling{by.factor(), by.original_context_length(), by.beta_fast(),
                               by.beta_slow(), by.attention_factor()};
  }
  return {};
}

std::unique_ptr<nn::LanguageModel> build_llama(const config::ModelConfig& model) {
  const config::LlamaConfig& from = model.llama();
  nn::LlamaOptions options;
  options.vocabulary = from.vocab_size();
  options.context_length = from.context_length();
  options.layers = from.layers();
  options.heads = from.heads();
  options.kv_heads = from.kv_heads();
  options.width = from.width();
  options.hidden_width = from.hidden_width();
  options.rope_theta = from.rope_theta();
  options.rope_scaling = rope_scaling(from.rope_scaling());
  options.epsilon = from.rms_norm_epsilon();
  options.tie_embeddings = from.tie_embeddings();
  options.mup = mup_of(model);
  return std::make_unique<nn::Llama>(options);
}

std::unique_ptr<nn::Classifier> build_resnet(const config::ModelConfig& model) {
  const config::ResnetConfig& from = model.resnet();
  nn::ResnetOptions options;
  options.channels = from.channels();
  options.height = from.height();
  options.width = from.width();
  options.classes = from.classes();
  options.base_width = from.base_width();
  options.blocks.assign(from.blocks().begin(), from.blocks().end());
  options.stem = from.stem() == config::ResnetConfig::IMAGENET ? nn::ResnetStem::kImageNet
                                                               : nn::ResnetStem::kSmall;
  return std::make_unique<nn::Resnet>(options);
}

std::unique_ptr<nn::Classifier> build_mlp(const config::ModelConfig& model) {
  const config::MlpConfig& from = model.mlp();
  nn::MlpOptions options;
  options.inputs = from.inputs();
  options.hidden_widths.assign(from.hidden_widths().begin(), from.hidden_widths().end());
  options.classes = from.classes();
  options.activation =
      from.activation() == config::MlpConfig::GELU ? nn::Activation::kGelu : nn::Activation::kRelu;
  options.activation_operator = from.activation_operator();
  try {
    return std::make_unique<nn::Mlp>(options);
  } catch (const DispatchError& error) {
    throw ConfigError(std::string("[model.mlp.activation_operator] ") + error.what());
  }
}

bool is_hidden_in_gpt2(const config::ModelConfig&, std::string_view name) {
  return name.starts_with("h.");
}

bool is_hidden_in_llama(const config::ModelConfig&, std::string_view name) {
  return name.starts_with("model.layers.");
}

bool is_hidden_in_resnet(const config::ModelConfig&, std::string_view name) {
  return name.starts_with("layer");
}

bool is_hidden_in_mlp(const config::ModelConfig& model, std::string_view name) {
  const std::string last = fmt::format("layers.{}.", model.mlp().hidden_widths_size());
  return !name.starts_with("layers.0.") && !name.starts_with(last);
}

/// A row for each of config::architectures(): the function of its kind is set.
struct Builder {
  std::string_view name;
  std::unique_ptr<nn::LanguageModel> (*language_model)(const config::ModelConfig& model) = nullptr;
  std::unique_ptr<nn::Classifier> (*classifier)(const config::ModelConfig& model) = nullptr;
  /// As is_hidden_layer; null if no layer is.
  bool (*is_hidden)(const config::ModelConfig& model, std::string_view name) = nullptr;
};

constexpr std::array kBuilders = {
    Builder{.name = "gpt2", .language_model = build_gpt2, .is_hidden = is_hidden_in_gpt2},
    Builder{.name = "llama", .language_model = build_llama, .is_hidden = is_hidden_in_llama},
    Builder{.name = "resnet", .classifier = build_resnet, .is_hidden = is_hidden_in_resnet},
    Builder{.name = "mlp", .classifier = build_mlp, .is_hidden = is_hidden_in_mlp},
};

const Builder& builder_of(const config::ModelConfig& model) {
  const std::string_view name = config::architecture_of(model).name;
  for (const Builder& each : kBuilders) {
    if (each.name == name) return each;
  }
  throw ConfigError(fmt::format("[train] model.{} has no row in train/architectures.cc.", name));
}

}  // namespace

std::unique_ptr<nn::LanguageModel> make_language_model(const config::ModelConfig& model) {
  const Builder& builder = builder_of(model);
  LS_ASSERT(builder.language_model != nullptr);
  return builder.language_model(model);
}

std::unique_ptr<nn::Classifier> make_classifier(const config::ModelConfig& model) {
  const Builder& builder = builder_of(model);
  LS_ASSERT(builder.classifier != nullptr);
  return builder.classifier(model);
}

nn::Mup mup_of(const config::ModelConfig& model) {
  if (!model.has_mup()) return {};
  const config::MupConfig& from = model.mup();
  const config::Architecture& architecture = config::architecture_of(model);
  LS_ASSERT(architecture.width != nullptr);
  const auto ratio = [](int64_t of, int64_t base) {
    return static_cast<double>(of) / static_cast<double>(base);
  };
  const int64_t width = architecture.width(model);
  return {
      .width = ratio(width, from.base_width()),
      .head_width = ratio(width / architecture.heads(model), from.base_width() / from.base_heads()),
      .input_multiplier = from.input_multiplier(),
      .output_multiplier = from.output_multiplier()};
}

bool is_hidden_layer(const config::ModelConfig& model, std::string_view name) {
  const Builder& builder = builder_of(model);
  return builder.is_hidden != nullptr && builder.is_hidden(model, name);
}

}  // namespace lockstep::train
