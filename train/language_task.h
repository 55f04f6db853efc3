#pragma once

#include <memory>
#include <optional>

#include "data/prefetch.h"
#include "data/staged_batches.h"
#include "data/token_source.h"
#include "nn/language_model.h"
#include "train/task.h"

namespace lockstep::train {

/// Training for next-token prediction. A background thread prepares batches ahead.
class LanguageTask final : public Task {
 public:
  struct Options {
    int64_t length = 0;            ///< tokens of a training sequence
    int64_t batch_size = 1;        ///< sequences of a step
    int64_t micro_batch_size = 1;  ///< sequences of a forward pass
    int64_t evaluation_size = 0;   ///< sequences of a forward pass in evaluation; 0: as in training
    /// Range of a step's sequences that this rank trains on.
    int64_t first_sample = 0;
    int64_t end_sample = 1;
    nn::LossOptions loss = {};      ///< in training
    bool within_documents = false;  ///< no token attends beyond its document
  };
  LanguageTask(std::unique_ptr<nn::LanguageModel> model, std::unique_ptr<TokenSource> source,
               Options options);

  nn::LanguageModel& model() override { return *model_; }
  const TokenSource& source() const { return *source_; }

  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override;
  std::string why_not_repeatable() const override;
  Samples samples(int64_t batch, int64_t first, int64_t count) override;
  Tensor sum_of_losses(TensorList samples) override;
  void train_on(int64_t first, int64_t end) override {
    options_.first_sample = first;
    options_.end_sample = end;
  }
  Tensor losses(int64_t batch, int64_t first, int64_t count) override;
  std::vector<SampleOrigin> origins(int64_t batch, int64_t count) const override {
    return source_->origins(batch, count, options_.length);
  }
  double data_wait_ms() const override { return prefetcher_ ? prefetcher_->wait_ms() : 0; }
  bool holds_out() const override;
  std::optional<Evaluation> evaluate(const HeldOutPart& part) override;
  int64_t tokens_per_sample() const override { return options_.length; }
  double flops_per_token() const override;
  ContentHash data_fingerprint() const override { return source_->fingerprint(); }
  ContentHash data_identity() const override { return source_->identity(); }
  std::vector<std::string> data_notes() const override { return source_->notes(); }
  std::vector<std::string> describe(const std::filesystem::path& folder) const override;
  std::string sample_text(int64_t bytes, uint64_t seed, const StopRequest& stop = {}) override;

 private:
  const StepBatch& batch_of(int64_t batch);
  /// Sizes of the documents in samples [first, first + count); empty unless they matter.
  std::vector<int64_t> documents(int64_t batch, int64_t first, int64_t count) const;
  int64_t fill(int64_t batch, int64_t first, const Tensor& inputs, const Tensor& targets);
  void prefetch_after(int64_t batch, int64_t first, int64_t count);

  std::unique_ptr<nn::LanguageModel> model_;
  std::unique_ptr<TokenSource> source_;
  Options options_;
  std::optional<Prefetcher> prefetcher_;  ///< created with the first batch
  const StepBatch* current_ = nullptr;
  int64_t current_batch_ = -1;
  StagedBatches micro_batches_;  ///< inputs and targets, [micro_batch_size, length]
};

}  // namespace lockstep::train
