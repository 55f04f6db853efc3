#include "nn/models/hugging_face_config.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/check.h"
#include "core/base/parse_json.h"

namespace lockstep::nn {

namespace {

using Json = nlohmann::json;

/// Writers leave out keys or set them to null alike.
bool has(const Json& config, const char* key) {
  return config.contains(key) && !config[key].is_null();
}

/// A number's bounds.
struct Range {
  double min = 0;
  double max = 0;
  bool min_excluded = false;
  bool max_excluded = false;

  /// False for NaN.
  bool contains(double value) const {
    return (min_excluded ? value > min : value >= min) &&
           (max_excluded ? value < max : value <= max);
  }
  std::string text() const {
    return fmt::format("{}{} and {}{}", min_excluded ? "above " : "at least ", min,
                       max_excluded ? "below " : "at most ", max);
  }
};

// The ranges of the fields of configs/model.proto, so that a model that is loaded is one that could
// be configured. tests/train/hugging_face_ranges_test.cc compares them.
constexpr Range kVocabulary{1, 16777216}, kContext{1, 1048576}, kLayers{1, 10000}, kHeads{1, 65536};
constexpr Range kWidth{1, 1048576}, kHiddenWidth{1, 4194304};
constexpr Range kDropout{0, 1, false, true}, kEpsilon{0, 1, true}, kTheta{1, 1e12, true};
constexpr Range kFactor{1, 1e6}, kPositive{0, 1e6, true};

const Json& required(const Json& config, const char* key) {
  LS_CHECK(has(config, key), ConfigError, "[config.json] \"{}\" is missing.", key);
  return config[key];
}

/// Returns a text. Json::get's own message would not name the key.
std::string text_of(const Json& config, const char* key) {
  const Json& json = required(config, key);
  LS_CHECK(json.is_string(), ConfigError,
           "[config.json] \"{}\" cannot be read: expected a text, got {}.", key, json.dump());
  return json.get<std::string>();
}

bool flag_or(const Json& config, const char* key, bool otherwise) {
  if (!has(config, key)) return otherwise;
  LS_CHECK(config[key].is_boolean(), ConfigError,
           "[config.json] \"{}\" cannot be read: expected true or false, got {}.", key,
           config[key].dump());
  return config[key].get<bool>();
}

/// Json::get would take true for 1.
double real(const Json& config, const char* key, const Range& range) {
  const Json& json = required(config, key);
  LS_CHECK(json.is_number(), ConfigError,
           "[config.json] \"{}\" cannot be read: expected a number, got {}.", key, json.dump());
  const double value = json.get<double>();
  LS_CHECK(range.contains(value), ConfigError, "[config.json] \"{}\" is {}: expected {}.", key,
           value, range.text());
  return value;
}

double real_or(const Json& config, const char* key, const Range& range, double otherwise) {
  return has(config, key) ? real(config, key, range) : otherwise;
}

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

int64_t size(const Json& config, const char* key, const Range& range) {
  required(config, key);
  const int64_t value = whole_number(config, key);
  LS_CHECK(value >= static_cast<int64_t>(range.min), ConfigError,
           "[config.json] \"{}\" is {}: expected at least {}.", key, value, range.min);
  LS_CHECK(value <= static_cast<int64_t>(range.max), ConfigError,
           "[config.json] \"{}\" is {}: expected at most {}.", key, value, range.max);
  return value;
}

int64_t size_or(const Json& config, const char* key, const Range& range, int64_t otherwise) {
  return has(config, key) ? size(config, key, range) : otherwise;
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
  options.vocabulary = size(config, "vocab_size", kVocabulary);
  options.context_length = size(config, "n_positions", kContext);
  options.layers = size(config, "n_layer", kLayers);
  options.heads = size(config, "n_head", kHeads);
  options.width = size(config, "n_embd", kWidth);
  options.epsilon = real_or(config, "layer_norm_epsilon", kEpsilon, 1e-5);
  options.dropout = real_or(config, "resid_pdrop", kDropout, 0);
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
  const std::string kind = has(rope, "rope_type") ? text_of(rope, "rope_type")
                           : has(rope, "type")    ? text_of(rope, "type")
                                                  : "default";
  const auto original = [&] {
    return size_or(rope, "original_max_position_embeddings", kContext, context_length);
  };
  expect(rope, "partial_rotary_factor", 1.0);
  if (kind == "default") return {};
  if (kind == "linear") return LinearRopeScaling{real(rope, "factor", kFactor)};
  if (kind == "llama3") {
    return Llama3RopeScaling{.factor = real(rope, "factor", kFactor),
                             .low_freq_factor = real(rope, "low_freq_factor", kPositive),
                             .high_freq_factor = real(rope, "high_freq_factor", kPositive),
                             .original_context_length = original()};
  }
  LS_CHECK(kind == "yarn", ConfigError,
           "[config.json] rope_type is not supported: expected default, linear, llama3 or yarn, "
           "got {}.",
           kind);
  expect(rope, "truncate", true);
  expect(rope, "mscale", nullptr);
  expect(rope, "mscale_all_dim", nullptr);
  YarnRopeScaling yarn{.factor = real(rope, "factor", kFactor),
                       .original_context_length = original(),
                       .beta_fast = real_or(rope, "beta_fast", kPositive, 32),
                       .beta_slow = real_or(rope, "beta_slow", kPositive, 1)};
  if (has(rope, "attention_factor")) {
    yarn.attention_factor = real(rope, "attention_factor", kPositive);
  }
  return yarn;
}

LlamaOptions llama_from(const Json& config) {
  expect(config, "hidden_act", "silu");
  expect(config, "attention_bias", false);
  expect(config, "mlp_bias", false);
  expect(config, "partial_rotary_factor", 1.0);
  LlamaOptions options;
  options.vocabulary = size(config, "vocab_size", kVocabulary);
  options.context_length = size(config, "max_position_embeddings", kContext);
  options.layers = size(config, "num_hidden_layers", kLayers);
  options.heads = size(config, "num_attention_heads", kHeads);
  options.kv_heads = size_or(config, "num_key_value_heads", kHeads, options.heads);
  options.width = size(config, "hidden_size", kWidth);
  options.hidden_width = size(config, "intermediate_size", kHiddenWidth);
  options.epsilon = real_or(config, "rms_norm_eps", kEpsilon, 1e-6);
  options.tie_embeddings = flag_or(config, "tie_word_embeddings", false);
  check_divides("num_attention_heads", options.heads, "hidden_size", options.width);
  check_divides("num_key_value_heads", options.kv_heads, "num_attention_heads", options.heads);
  expect(config, "head_dim", options.width / options.heads);
  const Json rope = rope_parameters_of(config);
  options.rope_theta = real_or(config, "rope_theta", kTheta, 10000);
  if (!rope.is_null()) options.rope_theta = real_or(rope, "rope_theta", kTheta, options.rope_theta);
  options.rope_scaling = rope_scaling_from(rope, options.context_length);
  return options;
}

}  // namespace

HuggingFaceConfig parse_hugging_face_config(std::string_view text) {
  try {
    const Json config = parse_json(text);
    const std::string type = text_of(config, "model_type");
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
