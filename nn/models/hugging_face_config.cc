#include "nn/models/hugging_face_config.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/check.h"
#include "core/base/json_text.h"

namespace lockstep::nn {

namespace {

using Json = nlohmann::json;

/// Writers leave out keys or set them to null alike.
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

/// Largest size of a dimension and number of layers. Products of two sizes, and 4 times a size,
/// then fit int64.
constexpr int64_t kMostSize = std::numeric_limits<int32_t>::max();
/// Most positions of a context: rotary tables are computed for all, so that no file bounds them.
/// Published models stay below 11 million.
constexpr int64_t kMostPositions = int64_t{1} << 24;

/// Json::get would cut fractions off, and has undefined behaviour for numbers out of range.
int64_t whole_number(const Json& config, const char* key) {
  const Json& json = config[key];
  constexpr double kLimit = 0x1p62;
  const bool fits = json.is_number_unsigned() ? std::in_range<int64_t>(json.get<uint64_t>())
                    : json.is_number_float()
                        ? std::abs(json.get<double>()) < kLimit &&
                              json.get<double>() == std::trunc(json.get<double>())
                        : json.is_number_integer();
  LS_CHECK(fits, ConfigError,
           "[config.json] \"{}\" cannot be read: expected a whole number, got {}.", key,
           json.dump());
  return json.get<int64_t>();
}

int64_t checked_size(const char* key, int64_t value, int64_t most = kMostSize) {
  LS_CHECK(value >= 1, ConfigError, "[config.json] \"{}\" is {}: expected at least 1.", key, value);
  LS_CHECK(value <= most, ConfigError, "[config.json] \"{}\" is {}: expected at most {}.", key,
           value, most);
  return value;
}

int64_t required_size(const Json& config, const char* key, int64_t most = kMostSize) {
  LS_CHECK(has(config, key), ConfigError, "[config.json] \"{}\" is missing.", key);
  return checked_size(key, whole_number(config, key), most);
}

int64_t size_or(const Json& config, const char* key, int64_t otherwise, int64_t most = kMostSize) {
  return has(config, key) ? checked_size(key, whole_number(config, key), most) : otherwise;
}

void check_divides(const char* part_key, int64_t part, const char* whole_key, int64_t whole) {
  LS_CHECK(whole % part == 0, ConfigError,
           "[config.json] \"{}\" does not divide \"{}\": expected a divisor of {}, got {}.",
           part_key, whole_key, whole, part);
}

/// Refuses what would silently compute something else.
void expect(const Json& config, const char* key, const Json& wanted) {
  LS_CHECK(!has(config, key) || config[key] == wanted, ConfigError,
           "[config.json] \"{}\" is not supported: expected {}, got {}.", key, wanted.dump(),
           config[key].dump());
}

Gpt2Options gpt2_from(const Json& config) {
  expect(config, "activation_function", "gelu_new");
  expect(config, "tie_word_embeddings", true);
  expect(config, "scale_attn_weights", true);
  expect(config, "scale_attn_by_inverse_layer_idx", false);
  Gpt2Options options;
  options.vocabulary = required_size(config, "vocab_size");
  options.context_length = required_size(config, "n_positions", kMostPositions);
  options.layers = required_size(config, "n_layer");
  options.heads = required_size(config, "n_head");
  options.width = required_size(config, "n_embd");
  options.epsilon = value_or(config, "layer_norm_epsilon", 1e-5);
  options.dropout = value_or(config, "resid_pdrop", 0.0);
  check_divides("n_head", options.heads, "n_embd", options.width);
  expect(config, "n_inner", 4 * options.width);
  return options;
}

/// The object that says how rotary positions work: newer files call it rope_parameters and keep the
/// theta in it, older ones rope_scaling. Null where there is neither.
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
    return size_or(rope, "original_max_position_embeddings", context_length, kMostPositions);
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

LlamaOptions llama_from(const Json& config) {
  expect(config, "hidden_act", "silu");
  expect(config, "attention_bias", false);
  expect(config, "mlp_bias", false);
  expect(config, "partial_rotary_factor", 1.0);
  LlamaOptions options;
  options.vocabulary = required_size(config, "vocab_size");
  options.context_length = required_size(config, "max_position_embeddings", kMostPositions);
  options.layers = required_size(config, "num_hidden_layers");
  options.heads = required_size(config, "num_attention_heads");
  options.kv_heads = size_or(config, "num_key_value_heads", options.heads);
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
  return options;
}

}  // namespace

HuggingFaceConfig parse_hugging_face_config(std::string_view text) {
  try {
    check_json_nesting(text);
    const Json config = Json::parse(text);
    const std::string type = required<std::string>(config, "model_type");
    if (type == "gpt2") return gpt2_from(config);
    if (type == "llama") return llama_from(config);
    throw ConfigError(fmt::format(
        "[config.json] model_type is not supported: expected gpt2 or llama, got {}.", type));
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("[config.json] cannot be read: {}.", error.what()));
  } catch (const DataError& error) {
    throw ConfigError(fmt::format("[config.json] cannot be read: {}", error.what()));
  }
}

double fewest_elements(const HuggingFaceConfig& config) {
  const auto of = [](int64_t size) { return static_cast<double>(size); };
  if (const auto* gpt2 = std::get_if<Gpt2Options>(&config)) {
    const double width = of(gpt2->width);
    return width * (of(gpt2->vocabulary) + of(gpt2->context_length)) +
           of(gpt2->layers) * 12 * width * width;
  }
  const auto& llama = std::get<LlamaOptions>(config);
  const double width = of(llama.width);
  const double kv_width = width / of(llama.heads) * of(llama.kv_heads);
  return width * of(llama.vocabulary) +
         of(llama.layers) * width * (2 * width + 2 * kv_width + 3 * of(llama.hidden_width));
}

}  // namespace lockstep::nn
