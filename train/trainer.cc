#include "train/trainer.h"

#include <chrono>
#include <cmath>

#include "configs/run.pb.h"
#include "core/generator.h"
#include "core/ops/reduce.h"
#include "core/parallel.h"
#include "train/build.h"
#include "train/grad_norm.h"

namespace lockstep::train {

Trainer::Trainer(const config::RunConfig& config) : Trainer(config, build_task(config)) {}

Trainer::Trainer(const config::RunConfig& config, std::unique_ptr<Task> task)
    : micro_batch_(config.train().micro_batch_size()),
      micro_batches_(config.train().batch_size() / micro_batch_),
      leaves_(config.train().leaves()),
      clip_grad_norm_(config.optimizer().clip_grad_norm()),
      overfit_one_batch_(config.train().overfit_one_batch()),
      task_(std::move(task)),
      schedule_(build_schedule(config)),
      optimizer_(build_optimizer(config, task_->model().named_parameters())),
      gradients_(task_->model().named_parameters()) {
  if (config.threads() > 0) set_num_threads(config.threads());
}

int64_t Trainer::run_leaf(int64_t batch, int64_t leaf, StepResult& result) {
  const int64_t count = micro_batches_ / leaves_;
  int64_t targets = 0;
  for (int64_t i = leaf * count; i < (leaf + 1) * count; ++i) {
    default_generator().set_position(static_cast<uint64_t>(batch), static_cast<uint32_t>(i));
    const SummedLoss loss = task_->forward(batch, i * micro_batch_, micro_batch_);
    if (i == 0) result.data_wait_ms = task_->data_wait_ms();
    loss.sum.backward();
    result.loss += loss.sum.item<double>();
    targets += loss.targets;
  }
  return targets;
}

StepResult Trainer::step() {
  const auto start = std::chrono::steady_clock::now();
  StepResult result;
  result.step = position_.step;
  result.tokens = samples_per_batch() * task_->tokens_per_sample();
  const int64_t batch = overfit_one_batch_ ? 0 : position_.batch;
  int64_t targets = 0;
  for (int64_t leaf = 0; leaf < leaves_; ++leaf) {
    gradients_.begin_leaf();
    targets += run_leaf(batch, leaf, result);
    gradients_.end_leaf();
  }
  const std::vector<Tensor>& gradients = gradients_.result().slots();

  // The losses were summed, so that no gradient depends on how a step was cut; the division by
  // the number of targets happens once, as the optimizer reads each gradient.
  const double mean = 1.0 / static_cast<double>(targets);
  result.loss *= mean;
  result.grad_norm = grad_norm(gradients) * mean;
  result.finite = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  // A step that updates nothing moves no schedule either.
  result.learning_rate = schedule_.learning_rate(optimizer_->steps());
  if (result.finite) {
    optimizer_->step(gradients, result.learning_rate,
                     mean * clip_factor(result.grad_norm, clip_grad_norm_));
  }
  ++position_.step;
  ++position_.batch;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace lockstep::train
