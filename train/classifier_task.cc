#include "train/classifier_task.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "core/check.h"
#include "core/ops/loss.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "train/token_source.h"

namespace lockstep::train {

namespace {

template <class T>
std::span<T> elements(const Tensor& tensor) {
  return {tensor.data<T>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

ClassifierTask::ClassifierTask(std::unique_ptr<nn::Classifier> model,
                               std::unique_ptr<SampleSource> source, int64_t micro_batch_size)
    : model_(std::move(model)),
      source_(std::move(source)),
      micro_batch_size_(micro_batch_size),
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
  LS_ASSERT(count == micro_batch_size_);
  const StagedBatches::MicroBatch samples = micro_batches_.get(batch, first);
  return {nn::sum_of_losses(*model_, samples.tensors[0], samples.tensors[1]), samples.targets};
}

std::optional<Evaluation> ClassifierTask::evaluate(int64_t max_batches, const StopRequest& stop) {
  const NoGradGuard no_grad;
  const bool was_training = model_->is_training();
  model_->eval();
  const Device device = model_->device();
  const DefaultDeviceGuard on_device(device);
  const int64_t rows = micro_batch_size_;
  const Tensor inputs = empty_tensor({rows, source_->features()}, DType::kF32);
  const Tensor labels = empty_tensor({rows}, DType::kI64);
  const int64_t batches = (source_->held_out_samples() + rows - 1) / rows;
  const int64_t used = max_batches > 0 ? std::min(max_batches, batches) : batches;
  Evaluation result;
  double sum = 0;
  int64_t correct = 0;
  bool stopped = false;
  for (int64_t i = 0; i < used; ++i) {
    stopped = stop && stop();
    if (stopped) break;
    result.targets += fill_held_out(*source_, i * batches / used * rows, elements<float>(inputs),
                                    elements<int64_t>(labels));
    const Tensor expected = labels.to(device);
    const Tensor logits = nn::logits_of(*model_, inputs.to(device));
    sum += cross_entropy_loss(logits, expected, {}, Reduction::kSum).item<double>();
    // No class is kIgnoredTarget, so padding is never right.
    correct += std::ranges::count(elements<bool>(eq(argmax(logits, 1), expected).to(kCPU)), true);
  }
  model_->train(was_training);
  if (stopped) return std::nullopt;
  const auto targets = static_cast<double>(std::max<int64_t>(result.targets, 1));
  result.loss = sum / targets;
  result.accuracy = static_cast<double>(correct) / targets;
  return result;
}

}  // namespace lockstep::train
