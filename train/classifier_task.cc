#include "train/classifier_task.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/loss/loss.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "data/token_source.h"
#include "train/evaluating.h"

namespace lockstep::train {

namespace {

template <class T>
std::span<T> elements(const Tensor& tensor) {
  return {tensor.data<T>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

ClassifierTask::ClassifierTask(std::unique_ptr<nn::Classifier> model,
                               std::unique_ptr<SampleSource> source, int64_t micro_batch_size,
                               int64_t evaluation_size)
    : model_(std::move(model)),
      source_(std::move(source)),
      micro_batch_size_(micro_batch_size),
      evaluation_size_(evaluation_size > 0 ? evaluation_size : micro_batch_size),
      micro_batches_(model_->device(),
                     {{{micro_batch_size, source_->features()}, DType::kF32},
                      {{micro_batch_size}, DType::kI64}},
                     [this](int64_t batch, int64_t first, std::span<const Tensor> into) {
                       fill_samples(*source_, batch, first, elements<float>(into[0]),
                                    elements<int64_t>(into[1]));
                       return micro_batch_size_;
                     }) {
  LS_CHECK(source_->features() == nn::input_size(*model_), ConfigError,
           "[data] a sample has {} numbers: expected {}, the model's input. Set the model's sizes.",
           source_->features(), nn::input_size(*model_));
  LS_CHECK(
      source_->classes() <= model_->classes(), ConfigError,
      "[data] there are {} classes: expected at most {}, the model's. Set the model's classes.",
      source_->classes(), model_->classes());
}

SummedLoss ClassifierTask::forward(int64_t batch, int64_t first, int64_t count) {
  const Samples read = samples(batch, first, count);
  return {sum_of_losses(read.tensors), read.targets};
}

Task::Samples ClassifierTask::samples(int64_t batch, int64_t first, int64_t count) {
  LS_ASSERT(count == micro_batch_size_);
  StagedBatches::MicroBatch samples = micro_batches_.get(batch, first);
  return {std::move(samples.tensors), samples.targets};
}

Tensor ClassifierTask::sum_of_losses(TensorList samples) {
  return nn::sum_of_losses(*model_, samples[0], samples[1]);
}

Tensor ClassifierTask::losses(int64_t batch, int64_t first, int64_t count) {
  LS_ASSERT(count == micro_batch_size_);
  const NoGradGuard no_grad;
  const StagedBatches::MicroBatch samples = micro_batches_.get(batch, first);
  return cross_entropy_loss(nn::logits_of(*model_, samples.tensors[0]), samples.tensors[1], {},
                            Reduction::kNone)
      .to(DType::kF64);
}

std::optional<Evaluation> ClassifierTask::evaluate(const HeldOutPart& part) {
  const NoGradGuard no_grad;
  const Evaluating evaluating(*model_);
  const Device device = model_->device();
  const DefaultDeviceGuard on_device(device);
  const int64_t rows = evaluation_size_;
  const Tensor inputs = empty_tensor({rows, source_->features()}, DType::kF32);
  const Tensor labels = empty_tensor({rows}, DType::kI64);
  const int64_t batches = (source_->held_out_samples() + rows - 1) / rows;
  const auto sum = sum_of_batches(batches, part, [&](int64_t batch) {
    BatchScore score;
    score.targets =
        fill_held_out(*source_, batch * rows, elements<float>(inputs), elements<int64_t>(labels));
    const Tensor expected = labels.to(device);
    const Tensor logits = nn::logits_of(*model_, inputs.to(device));
    score.loss = cross_entropy_loss(logits, expected, {}, Reduction::kSum).item<double>();
    // No class is kIgnoredTarget, so padding is never right.
    score.correct =
        std::ranges::count(elements<bool>(eq(argmax(logits, 1), expected).to(kCPU)), true);
    return score;
  });
  if (!sum) return std::nullopt;
  const auto targets = static_cast<double>(std::max<int64_t>(sum->targets, 1));
  Evaluation result;
  result.targets = sum->targets;
  result.loss = sum->loss / targets;
  result.accuracy = static_cast<double>(sum->correct) / targets;
  return result;
}

}  // namespace lockstep::train
