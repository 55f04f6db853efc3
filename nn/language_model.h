#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/block_model.h"
#include "nn/kv_cache.h"
#include "nn/layers.h"
#include "nn/scaling/mup.h"

namespace lockstep::nn {

/// The first rows of a parameter, which a model without multipliers (nn/scaling/mup.h) holds
/// multiplied by `factor`.
struct MultipliedRows {
  Tensor parameter;
  int64_t rows = 0;
  double factor = 1;
};

/// A decoder that predicts the next token at every position.
class LanguageModel : public BlockModel {
 public:
  /// What the classifier reads, [batch, length, width]: the normalised result of the last block for
  /// `tokens`, integers [batch, length]. With a cache the tokens follow those already in it and are
  /// added to it. Throws ShapeError when there are more positions than `context_length()`.
  virtual Tensor features(const Tensor& tokens, KvCache* cache = nullptr) = 0;
  /// Computes the same for rows that hold documents of `sizes` (nn/documents.h): no token attends
  /// beyond its own, and its position is that in its document. Throws ConfigError where a model
  /// does not know how.
  virtual Tensor features_of_documents(const Tensor& tokens, const std::vector<int64_t>& sizes);
  /// Weight [vocabulary, width] of the classifier, which has no bias.
  virtual const Tensor& classifier() const = 0;
  /// Logits [batch, length, vocabulary] of `tokens`: linear(features(tokens, cache), classifier()).
  Tensor forward(const Tensor& tokens, KvCache* cache = nullptr);

  virtual int64_t vocabulary() const = 0;
  virtual int64_t context_length() const = 0;
  virtual int64_t layers() const = 0;
  /// Width of the attention's keys over all heads, for the operation count.
  virtual int64_t attention_width() const = 0;

  /// The text of Hugging Face's config.json for this model. It has no place for multipliers: a
  /// model that is written for other programs loses them first (change_multipliers).
  virtual std::string hugging_face_config() const = 0;

  /// The factors of muP that the forward pass has beside the weights (nn/scaling/mup.h). Default:
  /// none.
  const Mup& mup() const { return mup_; }
  /// From now on computes with the multipliers of `mup`; the weights stay. Throws ConfigError where
  /// a model does not know how.
  virtual void use_multipliers(const Mup& mup);
  /// The rows that this model would hold multiplied if it computed what it does with the
  /// multipliers of `mup` without any; in one order for every `mup`.
  virtual std::vector<MultipliedRows> multiplied_rows(const Mup& mup) const;

 protected:
  /// For constructors and `use_multipliers` of models that know multipliers.
  void set_mup(const Mup& mup) { mup_ = mup; }

 private:
  Mup mup_;
};

/// How a matrix of a transformer's blocks begins under muP that begins as `init` in the base model.
Init matrix_init(const Mup& mup, Init init = {});

/// By what the rows of weights for the multipliers of `from` are multiplied to become those for the
/// multipliers of `to`.
std::vector<MultipliedRows> changed_rows(const LanguageModel& model, const Mup& from,
                                         const Mup& to);

/// Gives the model the multipliers of `to`, and changes its weights so that it computes the same as
/// before, but for rounding. `to` = {} makes it a model that other programs know.
void change_multipliers(LanguageModel& model, const Mup& to);

/// What is added to the cross-entropy of a prediction, of which p are the probabilities and Z the
/// sum of the exponentials of the logits.
struct LossOptions {
  /// Share, in [0, 1), of the uniform distribution in the target: (1 - s) (-log p[target]) + s
  /// (mean of -log p over the vocabulary).
  double label_smoothing = 0;
  /// Factor of log(Z)^2, which keeps the logits from drifting (PaLM, Chowdhery et al. 2022: 1e-4).
  double z_loss = 0;

  bool is_plain() const { return label_smoothing == 0 && z_loss == 0; }
};

/// Cross-entropy of the model's predictions, summed over the targets that are not -100, in f32.
/// inputs and targets: integers [batch, length]. A 0-d tensor.
///
/// With a vocabulary of at least 16,384 and more than twice as many targets as the model is wide,
/// classifier and loss are one operator that never stores the logits of all targets
/// (`linear_cross_entropy`). It keeps the gradient of the classifier's weight instead, in f32: with
/// fewer targets than that the logits are no larger, and small vocabularies give logits that are
/// small beside the other activations. With `options` that are not plain the same sizes are
/// computed in chunks of rows whose logits backward computes again (autograd/checkpoint.h).
///
/// `documents`, if not empty, are sizes of documents as for `features_of_documents`.
Tensor sum_of_losses(LanguageModel& model, const Tensor& inputs, const Tensor& targets,
                     const LossOptions& options = {}, const std::vector<int64_t>& documents = {});

/// The sum of losses of logits [rows, classes] and targets [rows], as above.
Tensor sum_of_losses(const Tensor& logits, const Tensor& targets, const LossOptions& options);
/// Computes it from the logits linear(rows, classifier), of which `chunk_rows` rows are there at a
/// time: backward computes them again. At least one row.
Tensor sum_of_losses_by_chunks(const Tensor& rows, const Tensor& classifier, const Tensor& targets,
                               const LossOptions& options, int64_t chunk_rows);

/// Logarithms of the probabilities that the model gives `targets`, each behind the inputs up to its
/// place: f32 [batch, length], and 0 where a target is -100. inputs and targets as above. On the
/// cpu a sequence has the same bits in a batch of any size, in training, in evaluation and in
/// generation (docs/numerics.md).
Tensor log_probabilities(LanguageModel& model, const Tensor& inputs, const Tensor& targets);
/// Computes the same from logits [rows, classes] and targets [rows], as [rows].
Tensor log_probabilities(const Tensor& logits, const Tensor& targets);

/// FLOPs of one training step per token: 6 per parameter, 4 where it is frozen, and 12 * layers *
/// width * length for attention (Kaplan et al. 2020, plus the two matrix products of attention).
double training_flops_per_token(const LanguageModel& model, int64_t length);

}  // namespace lockstep::nn
