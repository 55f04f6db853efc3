#include "train/evaluate.h"

#include <algorithm>
#include <numbers>

#include "autograd/grad_mode.h"
#include "core/ops/reduce.h"

namespace lockstep::train {

double Evaluation::bits_per_byte() const {
  if (bytes_per_target == 0) return std::numeric_limits<double>::quiet_NaN();
  return loss / std::numbers::ln2 / bytes_per_target;
}

std::optional<Evaluation> evaluate(nn::LanguageModel& model, const TokenSource& source,
                                   const EvaluationOptions& options) {
  const NoGradGuard no_grad;
  const Device device = model.device();
  const DefaultDeviceGuard on_device(device);
  const bool was_training = model.is_training();
  model.eval();
  const int64_t windows = source.validation_windows(options.length);
  const int64_t batches = (windows + options.rows - 1) / options.rows;
  const int64_t used = options.max_batches > 0 ? std::min(options.max_batches, batches) : batches;
  const Tensor inputs = empty_tensor({options.rows, options.length}, DType::kI64);
  const Tensor targets = empty_tensor({options.rows, options.length}, DType::kI64);
  const auto span = [](const Tensor& tensor) {
    return std::span(tensor.data<int64_t>(), static_cast<size_t>(tensor.numel()));
  };
  Evaluation result;
  result.bytes_per_target = source.held_out_bytes_per_token();
  double sum = 0;
  bool stopped = false;
  for (int64_t i = 0; i < used; ++i) {
    stopped = options.stop && options.stop();
    if (stopped) break;
    const int64_t batch = i * batches / used;
    result.targets +=
        fill_validation(source, batch * options.rows, options.length, span(inputs), span(targets));
    const Tensor losses = nn::sum_of_losses(model, inputs.to(device), targets.to(device));
    sum += losses.item<double>();
  }
  model.train(was_training);
  if (stopped) return std::nullopt;
  result.loss = sum / static_cast<double>(std::max<int64_t>(result.targets, 1));
  return result;
}

}  // namespace lockstep::train
