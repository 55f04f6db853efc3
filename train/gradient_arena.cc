#include "train/gradient_arena.h"

#include "autograd/accumulate_grad.h"
#include "core/check.h"
#include "core/ops/factory.h"

namespace lockstep::train {

namespace {

constexpr int64_t kSlotAlignment = 4096;

}  // namespace

GradientArena::GradientArena(const std::vector<nn::NamedParameter>& parameters)
    : parameters_(parameters) {
  std::vector<int64_t> offsets;
  int64_t elements = 0;
  for (const nn::NamedParameter& parameter : parameters_) {
    LS_CHECK(parameter.tensor.dtype() == DType::kF32, DTypeError,
             "[gradients] parameter {} has another dtype: expected float32, got {}.",
             parameter.name, to_string(parameter.tensor.dtype()));
    offsets.push_back(elements);
    elements += (parameter.tensor.numel() + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  }
  const Device device =
      parameters_.empty() ? default_device() : parameters_.front().tensor.device();
  flat_ = zeros({elements}, {DType::kF32, device});
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i].tensor;
    const size_t offset = static_cast<size_t>(offsets[i]) * sizeof(float);
    auto slot = make_ref<Storage>(flat_.storage(), offset, parameter.nbytes());
    slots_.push_back(
        Tensor(make_ref<TensorImpl>(std::move(slot), to_dims(parameter.sizes()),
                                    contiguous_strides(parameter.sizes()), 0, DType::kF32)));
  }
}

void GradientArena::attach() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.set_grad({});
    set_grad_destination(parameters_[i].tensor, slots_[i]);
  }
}

void GradientArena::check_complete() const {
  for (const nn::NamedParameter& parameter : parameters_) {
    LS_CHECK(parameter.tensor.grad().defined(), AutogradError,
             "[backward] parameter {} {} received no gradient: expected every parameter to take "
             "part in the loss. Remove it from the model or use it.",
             parameter.name, parameter.tensor.shape());
  }
}

}  // namespace lockstep::train
