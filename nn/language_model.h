#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/block_model.h"
#include "nn/kv_cache.h"

namespace lockstep::nn {

/// A decoder that predicts the next token at every position.
class LanguageModel : public BlockModel {
 public:
  /// What the classifier reads, [batch, length, width]: the normalised result of the last block for
  /// `tokens`, integers [batch, length]. With a cache the tokens follow those already in it and are
  /// added to it. Throws ShapeError when there are more positions than `context_length()`.
  virtual Tensor features(const Tensor& tokens, KvCache* cache = nullptr) = 0;
  /// Weight [vocabulary, width] of the classifier, which has no bias.
  virtual const Tensor& classifier() const = 0;
  /// Logits [batch, length, vocabulary] of `tokens`: linear(features(tokens, cache), classifier()).
  Tensor forward(const Tensor& tokens, KvCache* cache = nullptr);

  virtual int64_t vocabulary() const = 0;
  virtual int64_t context_length() const = 0;
  virtual int64_t layers() const = 0;
  /// Width of the attention's keys over all heads, for the operation count.
  virtual int64_t attention_width() const = 0;

  /// The text of Hugging Face's config.json for this model.
  virtual std::string hugging_face_config() const = 0;
};

/// Cross-entropy of the model's predictions, summed over the targets that are not -100, in f32.
/// inputs and targets: integers [batch, length]. A 0-d tensor.
///
/// With a vocabulary of at least 16,384 and more than twice as many targets as the model is wide,
/// classifier and loss are one operator that never stores the logits of all targets
/// (`linear_cross_entropy`). It keeps the gradient of the classifier's weight instead, in f32: with
/// fewer targets than that the logits are no larger, and small vocabularies give logits that are
/// small beside the other activations.
Tensor sum_of_losses(LanguageModel& model, const Tensor& inputs, const Tensor& targets);

/// FLOPs of one training step per token: 6 per parameter, and 12 * layers * width * length for
/// attention (Kaplan et al. 2020, plus the two matrix products of attention).
double training_flops_per_token(const LanguageModel& model, int64_t length);

}  // namespace lockstep::nn
