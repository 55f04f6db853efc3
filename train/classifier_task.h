#pragma once

#include <memory>

#include "data/sample_source.h"
#include "data/staged_batches.h"
#include "nn/classifier.h"
#include "train/task.h"

namespace lockstep::train {

/// Assigning one of a number of classes to each sample.
class ClassifierTask final : public Task {
 public:
  /// `micro_batch_size`: samples of a forward pass; `evaluation_size` the same in evaluation (0: as
  /// many). Throws ConfigError if model and data differ in the numbers of a sample, or the data has
  /// more classes.
  ClassifierTask(std::unique_ptr<nn::Classifier> model, std::unique_ptr<SampleSource> source,
                 int64_t micro_batch_size, int64_t evaluation_size = 0);

  nn::Classifier& model() override { return *model_; }
  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override;
  /// Always 0: samples are read from memory as part of the step.
  double data_wait_ms() const override { return 0; }
  bool holds_out() const override { return source_->held_out_samples() > 0; }
  /// With the share of samples whose likeliest class is their own.
  std::optional<Evaluation> evaluate(const HeldOutPart& part) override;
  int64_t tokens_per_sample() const override { return 1; }
  /// Forward and, twice as much, backward.
  double flops_per_token() const override { return 3 * model_->forward_flops(); }
  ContentHash data_fingerprint() const override { return source_->fingerprint(); }
  /// Weights alone say what they are.
  void describe(const std::filesystem::path&) const override {}
  std::string sample_text(int64_t, uint64_t) override { return ""; }

 private:
  std::unique_ptr<nn::Classifier> model_;
  std::unique_ptr<SampleSource> source_;
  int64_t micro_batch_size_;
  int64_t evaluation_size_;
  StagedBatches micro_batches_;  ///< inputs [micro_batch_size, features], labels [micro_batch_size]
};

}  // namespace lockstep::train
