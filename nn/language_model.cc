#include "nn/language_model.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/ops/loss.h"
#include "core/ops/view.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"

namespace lockstep::nn {

namespace {

using Json = nlohmann::json;

template <class T>
T required(const Json& config, const char* key) {
  LS_CHECK(config.contains(key), ConfigError, "[config.json] \"{}\" is missing.", key);
  return config[key].get<T>();
}

/// Refuses what would silently compute something else.
void expect(const Json& config, const char* key, const Json& wanted) {
  LS_CHECK(config.value(key, wanted) == wanted, ConfigError,
           "[config.json] \"{}\" is not supported: expected {}, got {}.", key, wanted.dump(),
           config[key].dump());
}

std::unique_ptr<LanguageModel> gpt2_from(const Json& config) {
  expect(config, "activation_function", "gelu_new");
  expect(config, "tie_word_embeddings", true);
  Gpt2Options options;
  options.vocabulary = required<int64_t>(config, "vocab_size");
  options.context_length = required<int64_t>(config, "n_positions");
  options.layers = required<int64_t>(config, "n_layer");
  options.heads = required<int64_t>(config, "n_head");
  options.width = required<int64_t>(config, "n_embd");
  options.epsilon = config.value("layer_norm_epsilon", 1e-5);
  options.dropout = config.value("resid_pdrop", 0.0);
  return std::make_unique<Gpt2>(options);
}

std::unique_ptr<LanguageModel> llama_from(const Json& config) {
  expect(config, "hidden_act", "silu");
  expect(config, "rope_scaling", nullptr);
  LlamaOptions options;
  options.vocabulary = required<int64_t>(config, "vocab_size");
  options.context_length = required<int64_t>(config, "max_position_embeddings");
  options.layers = required<int64_t>(config, "num_hidden_layers");
  options.heads = required<int64_t>(config, "num_attention_heads");
  options.kv_heads = config.value("num_key_value_heads", options.heads);
  options.width = required<int64_t>(config, "hidden_size");
  options.hidden_width = required<int64_t>(config, "intermediate_size");
  options.rope_theta = config.value("rope_theta", 10000.0);
  options.epsilon = config.value("rms_norm_eps", 1e-5);
  options.tie_embeddings = config.value("tie_word_embeddings", false);
  return std::make_unique<Llama>(options);
}

}  // namespace

Tensor sum_of_losses(LanguageModel& model, const Tensor& inputs, const Tensor& targets) {
  const Tensor logits = model.forward(inputs);
  return cross_entropy_loss(logits.view({-1, logits.size(-1)}), targets.reshape({-1}), {},
                            Reduction::kSum);
}

double training_flops_per_token(const LanguageModel& model, int64_t length) {
  return 6.0 * static_cast<double>(model.parameter_count()) +
         12.0 * static_cast<double>(model.layers() * model.attention_width() * length);
}

std::unique_ptr<LanguageModel> model_from_hugging_face(std::string_view text) {
  try {
    const Json config = Json::parse(text);
    const std::string type = required<std::string>(config, "model_type");
    if (type == "gpt2") return gpt2_from(config);
    if (type == "llama") return llama_from(config);
    throw ConfigError(fmt::format(
        "[config.json] model_type is not supported: expected gpt2 or llama, got {}.", type));
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("[config.json] cannot be read: {}.", error.what()));
  }
}

}  // namespace lockstep::nn
