#pragma once

#include <memory>

#include "data/sample_source.h"
#include "data/staged_batches.h"
#include "nn/classifier.h"
#include "train/task.h"

namespace lockstep::train {

/// Training a classifier: one label per sample, cross-entropy loss.
class ClassifierTask final : public Task {
 public:
  /// `micro_batch_size`: samples of a forward pass in training; `evaluation_size`: in evaluation
  /// (0: micro_batch_size). Throws ConfigError if the data's samples do not have as many features
  /// as the model has inputs, or the data has more classes than the model.
  ClassifierTask(std::unique_ptr<nn::Classifier> model, std::unique_ptr<SampleSource> source,
                 int64_t micro_batch_size, int64_t evaluation_size = 0);

  nn::Classifier& model() override { return *model_; }
  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override;
  std::string why_not_repeatable() const override { return {}; }
  Samples samples(int64_t batch, int64_t first, int64_t count) override;
  Tensor sum_of_losses(TensorList samples) override;
  Tensor losses(int64_t batch, int64_t first, int64_t count) override;
  std::vector<SampleOrigin> origins(int64_t batch, int64_t count) const override {
    return source_->origins(batch, count);
  }
  /// Always 0: samples are in memory, so no step waits for them.
  double data_wait_ms() const override { return 0; }
  bool holds_out() const override { return source_->held_out_samples() > 0; }
  /// The result also holds the accuracy (top 1).
  std::optional<Evaluation> evaluate(const HeldOutPart& part) override;
  int64_t tokens_per_sample() const override { return 1; }
  /// Backward takes twice the operations of forward, hence 3.
  double flops_per_token() const override { return 3 * model_->forward_flops(); }
  ContentHash data_fingerprint() const override { return source_->fingerprint(); }
  ContentHash data_identity() const override { return source_->identity(); }
  /// Writes nothing: names and shapes of the weights describe the model.
  std::vector<std::string> describe(const std::filesystem::path&) const override { return {}; }
  std::string sample_text(int64_t, uint64_t, const StopRequest& = {}) override { return ""; }

 private:
  std::unique_ptr<nn::Classifier> model_;
  std::unique_ptr<SampleSource> source_;
  int64_t micro_batch_size_;
  int64_t evaluation_size_;
  StagedBatches micro_batches_;  ///< inputs [micro_batch_size, features], labels [micro_batch_size]
};

}  // namespace lockstep::train
