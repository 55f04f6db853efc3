#include "nn/language_model.h"

#include "core/ops/loss/linear_cross_entropy.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/view/view.h"

namespace lockstep::nn {

namespace {

/// Whether the logits are large beside what linear_cross_entropy keeps in their place.
bool chunks_pay(const Tensor& classifier, int64_t targets) {
  constexpr int64_t kLargeVocabulary = 16384;
  return classifier.size(0) >= kLargeVocabulary && targets > 2 * classifier.size(1);
}

}  // namespace

Tensor LanguageModel::forward(const Tensor& tokens, KvCache* cache) {
  return linear(features(tokens, cache), classifier());
}

Tensor sum_of_losses(LanguageModel& model, const Tensor& inputs, const Tensor& targets) {
  if (chunks_pay(model.classifier(), targets.numel())) {
    return linear_cross_entropy(model.features(inputs), model.classifier(), targets,
                                Reduction::kSum);
  }
  const Tensor logits = model.forward(inputs);
  return cross_entropy_loss(logits.view({-1, logits.size(-1)}), targets.reshape({-1}), {},
                            Reduction::kSum);
}

double training_flops_per_token(const LanguageModel& model, int64_t length) {
  return 6.0 * static_cast<double>(model.parameter_count()) +
         12.0 * static_cast<double>(model.layers() * model.attention_width() * length);
}

}  // namespace lockstep::nn
