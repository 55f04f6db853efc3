#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nn/language_model.h"
#include "train/evaluate.h"
#include "train/gradient_tree.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/token_source.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// What one step did.
struct StepResult {
  int64_t step = 0;      ///< counts from 0
  double loss = 0;       ///< mean over the step's targets, in nats
  double grad_norm = 0;  ///< before clipping
  double learning_rate = 0;
  int64_t tokens = 0;  ///< inputs of the step
  double seconds = 0;
};

/// Trains one model in one process: micro-batches, leaves, clipping, the optimizer's step. Where
/// results go (files, terminal) is the caller's business.
///
/// A step is a function of (config, step number, weights, optimizer state); the number of kernel
/// threads does not change its bits. Not thread-safe.
class Trainer {
 public:
  /// `config` must be resolved. Throws DataError when the data cannot be read.
  explicit Trainer(const config::RunConfig& config);

  /// Runs the next step. Throws Error when the loss is not finite.
  StepResult step();
  int64_t steps_done() const { return step_; }
  /// Mean loss on held-out tokens; `max_batches` 0 means all of them.
  Evaluation evaluate(int64_t max_batches = 0);

  nn::LanguageModel& model() { return *model_; }
  const TokenSource& source() const { return *source_; }

 private:
  /// Forward and backward of one leaf; returns its sum of losses and adds to `targets`.
  double run_leaf(int64_t leaf, int64_t& targets);

  int64_t length_;
  int64_t micro_batch_;
  int64_t micro_batches_;
  int64_t leaves_;
  double clip_grad_norm_;
  std::unique_ptr<nn::LanguageModel> model_;
  std::unique_ptr<TokenSource> source_;
  Schedule schedule_;
  std::unique_ptr<Optimizer> optimizer_;
  GradientTree gradients_;
  Tensor inputs_;
  Tensor targets_;
  int64_t step_ = 0;
};

}  // namespace lockstep::train
