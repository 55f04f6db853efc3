#include "nn/language_model.h"

#include "core/ops/loss/loss.h"
#include "core/ops/view/view.h"

namespace lockstep::nn {

Tensor sum_of_losses(LanguageModel& model, const Tensor& inputs, const Tensor& targets) {
  const Tensor logits = model.forward(inputs);
  return cross_entropy_loss(logits.view({-1, logits.size(-1)}), targets.reshape({-1}), {},
                            Reduction::kSum);
}

double training_flops_per_token(const LanguageModel& model, int64_t length) {
  return 6.0 * static_cast<double>(model.parameter_count()) +
         12.0 * static_cast<double>(model.layers() * model.attention_width() * length);
}

}  // namespace lockstep::nn
