#include "nn/language_model.h"

#include <algorithm>

#include "autograd/checkpoint.h"
#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/loss/linear_cross_entropy.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "nn/class_name.h"

namespace lockstep::nn {

namespace {

constexpr int64_t kIgnored = -100;

/// Whether the logits are large beside what linear_cross_entropy keeps in their place.
bool chunks_pay(const Tensor& classifier, int64_t targets) {
  constexpr int64_t kLargeVocabulary = 16384;
  return classifier.size(0) >= kLargeVocabulary && targets > 2 * classifier.size(1);
}

}  // namespace

Tensor LanguageModel::forward(const Tensor& tokens, KvCache* cache) {
  return linear(features(tokens, cache), classifier());
}

Tensor LanguageModel::features_of_documents(const Tensor&, const std::vector<int64_t>&) {
  throw ConfigError(
      fmt::format("[{}] does not attend within documents: expected a model that does, as gpt2 and "
                  "llama. Choose "
                  "data.attention: ACROSS_DOCUMENTS, or implement features_of_documents.",
                  class_name(*this)));
}

void LanguageModel::use_multipliers(const Mup& mup) {
  LS_CHECK(mup.is_plain(), ConfigError,
           "[{}] has no multipliers of muP: expected a model that has them, as gpt2 and llama. "
           "Implement use_multipliers and multiplied_rows.",
           class_name(*this));
}

std::vector<MultipliedRows> LanguageModel::multiplied_rows(const Mup&) const { return {}; }

Init matrix_init(const Mup& mup, Init init) {
  init.deviation *= mup.deviation_of(WidthRole::kMatrix);
  return init;
}

std::vector<MultipliedRows> changed_rows(const LanguageModel& model, const Mup& from,
                                         const Mup& to) {
  std::vector<MultipliedRows> changed = model.multiplied_rows(from);
  const std::vector<MultipliedRows> after = model.multiplied_rows(to);
  for (size_t i = 0; i < changed.size(); ++i) changed[i].factor /= after[i].factor;
  return changed;
}

void change_multipliers(LanguageModel& model, const Mup& to) {
  const NoGradGuard no_grad;
  for (const MultipliedRows& each : changed_rows(model, model.mup(), to)) {
    if (each.factor != 1) each.parameter.narrow(0, 0, each.rows).mul_(each.factor);
  }
  model.use_multipliers(to);
}

Tensor sum_of_losses(const Tensor& logits, const Tensor& targets, const LossOptions& options) {
  if (options.is_plain()) return cross_entropy_loss(logits, targets, {}, Reduction::kSum, kIgnored);
  const auto [loss, logsumexp] = fused_cross_entropy(logits, targets, Reduction::kSum, kIgnored);
  const DType wide = logsumexp.dtype();
  // -log p of a class is logsumexp - logit.
  Tensor each = square(logsumexp) * options.z_loss;
  if (options.label_smoothing > 0) {
    each = each + (logsumexp - mean(logits, {-1}, false, wide)) * options.label_smoothing;
  }
  const Tensor more = where(ne(targets, kIgnored), each, zeros_like(each.detach()));
  return loss * (1 - options.label_smoothing) + sum(more);
}

Tensor sum_of_losses_by_chunks(const Tensor& rows, const Tensor& classifier, const Tensor& targets,
                               const LossOptions& options, int64_t chunk_rows) {
  Tensor total;
  for (int64_t first = 0; first < rows.size(0); first += chunk_rows) {
    const int64_t size = std::min(chunk_rows, rows.size(0) - first);
    const Tensor loss = checkpoint(
        [options](const Tensor& part, const Tensor& weight, const Tensor& of_part) {
          return sum_of_losses(linear(part, weight), of_part, options);
        },
        rows.narrow(0, first, size), classifier, targets.narrow(0, first, size));
    total = total.defined() ? total + loss : loss;
  }
  return total;
}

Tensor sum_of_losses(LanguageModel& model, const Tensor& inputs, const Tensor& targets,
                     const LossOptions& options, const std::vector<int64_t>& documents) {
  const auto features_of_inputs = [&] {
    return documents.empty() ? model.features(inputs)
                             : model.features_of_documents(inputs, documents);
  };
  if (!chunks_pay(model.classifier(), targets.numel())) {
    const Tensor logits = linear(features_of_inputs(), model.classifier());
    return sum_of_losses(logits.view({-1, logits.size(-1)}), targets.reshape({-1}), options);
  }
  const Tensor features = features_of_inputs();
  const Tensor& classifier = model.classifier();
  if (options.is_plain())
    return linear_cross_entropy(features, classifier, targets, Reduction::kSum);
  const Tensor rows = features.reshape({-1, features.size(-1)});
  return sum_of_losses_by_chunks(
      rows, classifier, targets.reshape({-1}), options,
      linear_cross_entropy_chunk(rows.size(0), classifier.size(0), rows.device().type));
}

Tensor log_probabilities(const Tensor& logits, const Tensor& targets) {
  return -cross_entropy_loss(logits.to(DType::kF32), targets, {}, Reduction::kNone, kIgnored);
}

Tensor log_probabilities(LanguageModel& model, const Tensor& inputs, const Tensor& targets) {
  const Tensor flat = targets.reshape({-1});
  if (chunks_pay(model.classifier(), targets.numel())) {
    const Tensor features = model.features(inputs);
    const Tensor losses =
        linear_cross_entropy(features, model.classifier(), targets, Reduction::kNone, kIgnored);
    return (-losses).view(targets.sizes());
  }
  const Tensor logits = model.forward(inputs);
  return log_probabilities(logits.view({-1, logits.size(-1)}), flat).view(targets.sizes());
}

double training_flops_per_token(const LanguageModel& model, int64_t length) {
  return 4.0 * static_cast<double>(model.parameter_count()) +
         2.0 * static_cast<double>(model.trained_parameter_count()) +
         12.0 * static_cast<double>(model.layers() * model.attention_width() * length);
}

}  // namespace lockstep::nn
