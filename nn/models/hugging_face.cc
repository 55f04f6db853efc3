#include "nn/models/hugging_face.h"

#include "core/base/check.h"
#include "nn/models/hugging_face_config.h"

namespace lockstep::nn {
namespace {

/// Refuses a model far larger than its weights. Smaller differences pass, because loading reports
/// them by tensor; so does a small model, which costs little.
void check_against(const WeightsSize& weights, const HuggingFaceConfig& config) {
  constexpr double kFactor = 2;
  constexpr double kSmall = 1 << 24;  // 64 MiB as float32
  const double wanted = fewest_elements(config);
  LS_CHECK(wanted <= kFactor * static_cast<double>(weights.elements) + kSmall, ConfigError,
           "[config.json] describes a model of at least {:.4g} elements: expected about {}, which "
           "the weights beside it hold. Do the files belong together?",
           wanted, weights.elements);
  const int64_t layers = std::visit([](const auto& options) { return options.layers; }, config);
  constexpr int64_t kSmallLayers = 1024;
  LS_CHECK(layers <= weights.tensors + kSmallLayers, ConfigError,
           "[config.json] describes {} layers, but the weights beside it are {} tensors. Do the "
           "files belong together?",
           layers, weights.tensors);
}

}  // namespace

std::unique_ptr<LanguageModel> model_from_hugging_face(std::string_view text,
                                                       std::optional<WeightsSize> weights) {
  const HuggingFaceConfig config = parse_hugging_face_config(text);
  if (weights) check_against(*weights, config);
  if (const auto* gpt2 = std::get_if<Gpt2Options>(&config)) return std::make_unique<Gpt2>(*gpt2);
  return std::make_unique<Llama>(std::get<LlamaOptions>(config));
}

}  // namespace lockstep::nn
