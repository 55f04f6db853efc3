#include "train/optimizer.h"

#include "autograd/grad_mode.h"
#include "core/ops/factory.h"
#include "core/ops/optimizer.h"

namespace lockstep::train {

namespace {

std::vector<Tensor> zeros_for(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> state;
  for (const Tensor& parameter : parameters) {
    state.push_back(zeros(parameter.sizes(), parameter.options()));
  }
  return state;
}

std::vector<int64_t> decay_flags(const std::vector<Tensor>& parameters) {
  std::vector<int64_t> flags;
  for (const Tensor& parameter : parameters) flags.push_back(parameter.dim() >= 2 ? 1 : 0);
  return flags;
}

}  // namespace

AdamW::AdamW(std::vector<Tensor> parameters, AdamWOptions options)
    : options_(options),
      parameters_(std::move(parameters)),
      means_(zeros_for(parameters_)),
      squares_(zeros_for(parameters_)),
      decayed_(decay_flags(parameters_)) {}

void AdamW::step(const std::vector<Tensor>& gradients, double learning_rate, double grad_scale) {
  const NoGradGuard no_grad;
  _fused_adamw_(parameters_, gradients, means_, squares_, learning_rate, options_.beta1,
                options_.beta2, options_.weight_decay, options_.epsilon, ++steps_, grad_scale,
                decayed_);
}

Sgd::Sgd(std::vector<Tensor> parameters, SgdOptions options)
    : options_(options),
      parameters_(std::move(parameters)),
      buffers_(options.momentum > 0 ? zeros_for(parameters_) : std::vector<Tensor>()),
      decayed_(decay_flags(parameters_)) {}

void Sgd::step(const std::vector<Tensor>& gradients, double learning_rate, double grad_scale) {
  const NoGradGuard no_grad;
  _fused_sgd_(parameters_, gradients, buffers_, learning_rate, options_.momentum, options_.nesterov,
              options_.weight_decay, grad_scale, decayed_);
}

}  // namespace lockstep::train
