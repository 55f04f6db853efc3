#include "nn/classifier.h"

#include "core/base/check.h"
#include "core/ops/loss/loss.h"
#include "core/ops/view/view.h"

namespace lockstep::nn {

int64_t input_size(const Classifier& model) { return count_elements(model.input_shape()); }

Tensor logits_of(Classifier& model, const Tensor& samples) {
  const int64_t size = input_size(model);
  LS_CHECK(samples.dim() >= 1 && samples.numel() == samples.size(0) * size, ShapeError,
           "[classifier] expected samples of {} numbers, shape {} each, got {}.", size,
           to_string(IntList(model.input_shape())), samples.shape());
  std::vector<int64_t> sizes = model.input_shape();
  sizes.insert(sizes.begin(), samples.size(0));
  return model.forward(samples.reshape(sizes));
}

Tensor sum_of_losses(Classifier& model, const Tensor& samples, const Tensor& labels) {
  return cross_entropy_loss(logits_of(model, samples), labels, {}, Reduction::kSum);
}

}  // namespace lockstep::nn
