#include "nn/models/hugging_face_config.h"

#include <cmath>

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

void check_size(int64_t size) {
  require(size >= 1 && size < int64_t{1} << 31, "sizes are from 1 to 2^31 - 1");
}

void check(const nn::Gpt2Options& options) {
  require(options.width % options.heads == 0, "heads divide the width");
}

void check(const nn::LlamaOptions& options) {
  check_size(options.kv_heads);
  check_size(options.hidden_width);
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
        check_size(options.vocabulary);
        check_size(options.context_length);
        check_size(options.layers);
        check_size(options.heads);
        check_size(options.width);
        require(options.context_length <= int64_t{1} << 24, "a context has at most 2^24 positions");
        check(options);
      },
      config);
  const double elements = nn::fewest_elements(config);
  require(std::isfinite(elements) && elements > 0, "a model has elements");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
