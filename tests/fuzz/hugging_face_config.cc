#include "nn/models/hugging_face_config.h"

#include <cmath>

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

void check_size(int64_t size, int64_t most) {
  require(size >= 1 && size <= most, "sizes lie in the ranges of model.proto");
}

void check(const nn::Gpt2Options& options) {
  require(options.dropout >= 0 && options.dropout < 1, "dropout is a probability below 1");
  require(options.width % options.heads == 0, "heads divide the width");
}

void check(const nn::LlamaOptions& options) {
  check_size(options.kv_heads, 65536);
  check_size(options.hidden_width, 4194304);
  require(options.rope_theta > 1 && options.rope_theta <= 1e12, "theta is above 1");
  require(options.width % options.heads == 0, "heads divide the width");
  require(options.heads % options.kv_heads == 0, "key/value heads divide the heads");
}

}  // namespace

Outcome fuzz_hugging_face_config(Input input) {
  nn::HuggingFaceConfig config;
  try {
    config = nn::parse_hugging_face_config(text_of(input));
  } catch (const ConfigError& error) {
    require(std::string(error.what()).starts_with("[config.json] "), "an error names the file");
    return Outcome::kRefused;
  }
  std::visit(
      [](const auto& options) {
        check_size(options.vocabulary, 16777216);
        check_size(options.context_length, 1048576);
        check_size(options.layers, 10000);
        check_size(options.heads, 65536);
        check_size(options.width, 1048576);
        require(options.epsilon > 0 && options.epsilon <= 1, "epsilon is above 0");
        check(options);
      },
      config);
  const double elements = nn::fewest_elements(config);
  require(std::isfinite(elements) && elements > 0, "a model has elements");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
