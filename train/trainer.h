#pragma once

#include <memory>

#include "train/grad_scaler.h"
#include "train/gradient_tree.h"
#include "train/optimizer.h"
#include "train/precision.h"
#include "train/schedule.h"
#include "train/task.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// What one step did.
struct StepResult {
  int64_t step = 0;      ///< counts from 0
  double loss = 0;       ///< mean over the step's targets, in nats
  double grad_norm = 0;  ///< before clipping; of the gradients without the loss scale
  double learning_rate = 0;
  int64_t tokens = 0;  ///< inputs of the step
  double seconds = 0;
  double data_wait_ms = 0;  ///< part of `seconds` in which the batch was not ready
  double loss_scale = 1;    ///< what the losses were multiplied by before backward
  bool finite = true;       ///< false: loss or norm is not finite, and nothing was updated
  /// Gradients overflowed under the loss scale, which backed off: nothing was updated, and the norm
  /// is not finite. Part of f16 training, so `finite` stays true.
  bool overflowed = false;
};

/// Where a run stands, besides weights and optimizer state.
struct Position {
  int64_t step = 0;   ///< the next step, from 0
  int64_t batch = 0;  ///< the next training batch; ahead of the step where batches were left out
  friend bool operator==(const Position&, const Position&) = default;
};

/// Trains one model in one process: micro-batches, leaves, clipping, the optimizer's step. Where
/// results go (files, terminal) is the caller's business.
///
/// A step is a function of (config, position, weights, optimizer state); the number of kernel
/// threads does not change its bits. Not thread-safe.
class Trainer {
 public:
  /// `config` must be resolved. Throws DataError when the data cannot be read.
  explicit Trainer(const config::RunConfig& config);
  /// Trains `task` as `config` says, whatever model and data it names.
  Trainer(const config::RunConfig& config, std::unique_ptr<Task> task);

  /// Runs the next step. When loss or norm is not finite the batch is spent, weights and optimizer
  /// stay as they were, and the result says so.
  StepResult step();
  int64_t steps_done() const { return position_.step; }
  int64_t samples_per_batch() const { return micro_batches_ * micro_batch_; }

  Position position() const { return position_; }
  /// Goes on from here; weights and optimizer state are the caller's to restore.
  void set_position(Position position) { position_ = position; }

  /// As Task::evaluate, in the run's precision.
  std::optional<Evaluation> evaluate(int64_t max_batches, const StopRequest& stop = {});

  Task& task() { return *task_; }
  const Task& task() const { return *task_; }
  Optimizer& optimizer() { return *optimizer_; }
  /// Enabled in F16_MIXED runs alone.
  GradScaler& scaler() { return scaler_; }
  const GradScaler& scaler() const { return scaler_; }

 private:
  /// The losses of one micro-batch.
  SummedLoss forward(int64_t batch, int64_t first);
  /// Forward and backward of one leaf; adds its losses, not their mean, to `result`. Returns the
  /// number of its targets.
  int64_t run_leaf(int64_t batch, int64_t leaf, StepResult& result);

  int64_t micro_batch_;
  int64_t micro_batches_;
  int64_t leaves_;
  double clip_grad_norm_;
  Precision precision_;
  DeviceType device_;
  bool overfit_one_batch_;
  std::unique_ptr<Task> task_;
  Schedule schedule_;
  std::unique_ptr<Optimizer> optimizer_;
  double smallest_loss_scale_;
  GradScaler scaler_;
  GradientTree gradients_;
  Position position_;
};

}  // namespace lockstep::train
