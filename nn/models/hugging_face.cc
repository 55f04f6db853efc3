#include "nn/models/hugging_face.h"

#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"

namespace lockstep::nn {

namespace {

using Json = nlohmann::json;

/// Whether `key` has a value. Hugging Face's writers omit keys or set them to null.
bool has(const Json& config, const char* key) {
  return config.contains(key) && !config[key].is_null();
}

template <class T>
T value_or(const Json& config, const char* key, T otherwise) {
  return has(config, key) ? config[key].get<T>() : otherwise;
}

template <class T>
T required(const Json& config, const char* key) {
  LS_CHECK(has(config, key), ConfigError, "[config.json] \"{}\" is missing.", key);
  return config[key].get<T>();
}

int64_t at_least_one(const char* key, int64_t value) {
  LS_CHECK(value >= 1, ConfigError, "[config.json] \"{}\" is {}: expected at least 1.", key, value);
  return value;
}

int64_t required_size(const Json& config, const char* key) {
  return at_least_one(key, required<int64_t>(config, key));
}

void check_divides(const char* part_key, int64_t part, const char* whole_key, int64_t whole) {
  LS_CHECK(whole % part == 0, ConfigError,
           "[config.json] \"{}\" does not divide \"{}\": expected a divisor of {}, got {}.",
           part_key, whole_key, whole, part);
}

/// Throws ConfigError if `key` has another value than `wanted`, the only one that is implemented.
void expect(const Json& config, const char* key, const Json& wanted) {
  LS_CHECK(!has(config, key) || config[key] == wanted, ConfigError,
           "[config.json] \"{}\" is not supported: expected {}, got {}.", key, wanted.dump(),
           config[key].dump());
}

std::unique_ptr<LanguageModel> gpt2_from(const Json& config) {
  expect(config, "activation_function", "gelu_new");
  expect(config, "tie_word_embeddings", true);
  expect(config, "scale_attn_weights", true);
  expect(config, "scale_attn_by_inverse_layer_idx", false);
  Gpt2Options options;
  options.vocabulary = required_size(config, "vocab_size");
  options.context_length = required_size(config, "n_positions");
  options.layers = required_size(config, "n_layer");
  options.heads = required_size(config, "n_head");
  options.width = required_size(config, "n_embd");
  options.epsilon = value_or(config, "layer_norm_epsilon", 1e-5);
  options.dropout = value_or(config, "resid_pdrop", 0.0);
  check_divides("n_head", options.heads, "n_embd", options.width);
  expect(config, "n_inner", 4 * options.width);
  return std::make_unique<Gpt2>(options);
}

/// The object with the parameters of rotary positions: newer files call it rope_parameters and keep
/// theta in it, older ones rope_scaling. Null if there is neither.
Json rope_parameters_of(const Json& config) {
  const Json newer = config.value("rope_parameters", Json());
  const Json older = config.value("rope_scaling", Json());
  LS_CHECK(newer.is_null() || older.is_null() || newer == older, ConfigError,
           "[config.json] \"rope_parameters\" and \"rope_scaling\" differ: {} and {}. Keep one.",
           newer.dump(), older.dump());
  const Json& found = newer.is_null() ? older : newer;
  LS_CHECK(found.is_null() || found.is_object(), ConfigError,
           "[config.json] \"{}\" is no object: got {}.",
           newer.is_null() ? "rope_scaling" : "rope_parameters", found.dump());
  return found;
}

RopeScaling rope_scaling_from(const Json& rope, int64_t context_length) {
  if (rope.is_null()) return {};
  const std::string kind =
      value_or<std::string>(rope, "rope_type", value_or<std::string>(rope, "type", "default"));
  const auto original = [&] {
    return value_or(rope, "original_max_position_embeddings", context_length);
  };
  expect(rope, "partial_rotary_factor", 1.0);
  if (kind == "default") return {};
  if (kind == "linear") return LinearRopeScaling{required<double>(rope, "factor")};
  if (kind == "llama3") {
    return Llama3RopeScaling{.factor = required<double>(rope, "factor"),
                             .low_freq_factor = required<double>(rope, "low_freq_factor"),
                             .high_freq_factor = required<double>(rope, "high_freq_factor"),
                             .original_context_length = original()};
  }
  LS_CHECK(kind == "yarn", ConfigError,
           "[config.json] rope_type is not supported: expected default, linear, llama3 or yarn, "
           "got {}.",
           kind);
  expect(rope, "truncate", true);
  expect(rope, "mscale", nullptr);
  expect(rope, "mscale_all_dim", nullptr);
  YarnRopeScaling yarn{.factor = required<double>(rope, "factor"),
                       .original_context_length = original(),
                       .beta_fast = value_or(rope, "beta_fast", 32.0),
                       .beta_slow = value_or(rope, "beta_slow", 1.0)};
  if (has(rope, "attention_factor")) yarn.attention_factor = rope["attention_factor"].get<double>();
  return yarn;
}

std::unique_ptr<LanguageModel> llama_from(const Json& config) {
  expect(config, "hidden_act", "silu");
  expect(config, "attention_bias", false);
  expect(config, "mlp_bias", false);
  expect(config, "partial_rotary_factor", 1.0);
  LlamaOptions options;
  options.vocabulary = required_size(config, "vocab_size");
  options.context_length = required_size(config, "max_position_embeddings");
  options.layers = required_size(config, "num_hidden_layers");
  options.heads = required_size(config, "num_attention_heads");
  options.kv_heads =
      at_least_one("num_key_value_heads", value_or(config, "num_key_value_heads", options.heads));
  options.width = required_size(config, "hidden_size");
  options.hidden_width = required_size(config, "intermediate_size");
  options.epsilon = value_or(config, "rms_norm_eps", 1e-6);
  options.tie_embeddings = value_or(config, "tie_word_embeddings", false);
  check_divides("num_attention_heads", options.heads, "hidden_size", options.width);
  check_divides("num_key_value_heads", options.kv_heads, "num_attention_heads", options.heads);
  expect(config, "head_dim", options.width / options.heads);
  const Json rope = rope_parameters_of(config);
  options.rope_theta = value_or(config, "rope_theta", 10000.0);
  if (!rope.is_null()) options.rope_theta = value_or(rope, "rope_theta", options.rope_theta);
  options.rope_scaling = rope_scaling_from(rope, options.context_length);
  return std::make_unique<Llama>(options);
}

}  // namespace

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
