#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "configs/run.pb.h"
#include "core/check.h"
#include "core/generator.h"
#include "core/ops/reduce.h"
#include "core/parallel.h"
#include "train/build.h"
#include "train/grad_norm.h"

namespace lockstep::train {

namespace {

std::span<int64_t> elements(const Tensor& tensor) {
  return {tensor.data<int64_t>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

Trainer::Trainer(const config::RunConfig& config)
    : length_(sequence_length(config)),
      micro_batch_(config.train().micro_batch_size()),
      micro_batches_(config.train().batch_size() / micro_batch_),
      leaves_(config.train().leaves()),
      clip_grad_norm_(config.optimizer().clip_grad_norm()),
      model_(build_model(config)),
      source_(build_source(config)),
      schedule_(build_schedule(config)),
      optimizer_(build_optimizer(config, model_->parameters())),
      gradients_(model_->named_parameters()),
      inputs_(empty_tensor({micro_batch_, length_}, DType::kI64)),
      targets_(empty_tensor({micro_batch_, length_}, DType::kI64)) {
  if (config.threads() > 0) set_num_threads(config.threads());
}

double Trainer::run_leaf(int64_t leaf, int64_t& targets) {
  const int64_t count = micro_batches_ / leaves_;
  double loss = 0;
  for (int64_t i = leaf * count; i < (leaf + 1) * count; ++i) {
    default_generator().set_position(static_cast<uint64_t>(step_), static_cast<uint32_t>(i));
    fill_sequences(*source_, step_, i * micro_batch_, length_, elements(inputs_),
                   elements(targets_));
    const Tensor losses = nn::sum_of_losses(*model_, inputs_, targets_);
    losses.backward();
    loss += losses.item<double>();
    targets +=
        std::ranges::count_if(elements(targets_), [](int64_t t) { return t != kIgnoredTarget; });
  }
  return loss;
}

StepResult Trainer::step() {
  const auto start = std::chrono::steady_clock::now();
  StepResult result;
  result.step = step_;
  result.tokens = micro_batches_ * micro_batch_ * length_;
  int64_t targets = 0;
  for (int64_t leaf = 0; leaf < leaves_; ++leaf) {
    gradients_.begin_leaf();
    result.loss += run_leaf(leaf, targets);
    gradients_.end_leaf();
  }
  const std::vector<Tensor>& gradients = gradients_.result().slots();

  // The losses were summed, so that no gradient depends on how a step was cut; the division by
  // the number of targets happens once, as the optimizer reads each gradient.
  const double mean = 1.0 / static_cast<double>(targets);
  result.loss *= mean;
  result.grad_norm = grad_norm(gradients) * mean;
  LS_CHECK(std::isfinite(result.loss) && std::isfinite(result.grad_norm), NonFiniteError,
           "[train] the loss is not finite: expected a number, got loss {} and gradient norm {} at "
           "step {}. Lower optimizer.learning_rate or lengthen schedule.warmup_steps.",
           result.loss, result.grad_norm, step_);
  result.learning_rate = schedule_.learning_rate(step_);
  optimizer_->step(gradients, result.learning_rate,
                   mean * clip_factor(result.grad_norm, clip_grad_norm_));
  ++step_;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

Evaluation Trainer::evaluate(int64_t max_batches) {
  return train::evaluate(*model_, *source_,
                         {.length = length_, .rows = micro_batch_, .max_batches = max_batches});
}

}  // namespace lockstep::train
