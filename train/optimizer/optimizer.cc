#include "train/optimizer/optimizer.h"

#include <numeric>

#include "autograd/grad_mode.h"
#include "core/base/phase.h"
#include "core/ops/factory/factory.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "train/optimizer/kept_casts.h"
#include "train/optimizer/read_back.h"

namespace lockstep::train {

namespace {

std::vector<std::string> names_of(const std::vector<nn::NamedParameter>& parameters) {
  std::vector<std::string> names;
  for (const nn::NamedParameter& parameter : parameters) names.push_back(parameter.name);
  return names;
}

std::vector<Tensor> tensors_of(const std::vector<nn::NamedParameter>& parameters) {
  std::vector<Tensor> tensors;
  for (const nn::NamedParameter& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

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

template <class T>
std::vector<T> chosen(const std::vector<T>& list, std::span<const uint32_t> numbers) {
  std::vector<T> result;
  result.reserve(numbers.size());
  for (const uint32_t number : numbers) result.push_back(list[number]);
  return result;
}

std::vector<uint32_t> all_of(const std::vector<Tensor>& parameters) {
  std::vector<uint32_t> numbers(parameters.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void append(std::vector<nn::StoredParameter>& state, const std::string& prefix,
            const std::vector<std::string>& names, const std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) state.push_back({prefix + names[i], tensors[i]});
}

}  // namespace

Optimizer::Optimizer(const std::vector<nn::NamedParameter>& parameters)
    : step_count_(
          zeros({}, {DType::kF64, parameters.empty() ? kCPU : parameters[0].tensor.device()})) {}

void Optimizer::step(const std::vector<Tensor>& gradients, double learning_rate, double grad_scale,
                     const DeviceScalars& known_there) {
  const PhaseGuard phase(Phase::kOptimizer);
  const NoGradGuard no_grad;
  count_step(known_there.found_inf);
  update({gradients, learning_rate, grad_scale, known_there});
}

void Optimizer::step_part(std::span<const uint32_t> parameters,
                          const std::vector<Tensor>& gradients, double learning_rate,
                          double grad_scale) {
  const PhaseGuard phase(Phase::kOptimizer);
  const NoGradGuard no_grad;
  update(parameters, {gradients, learning_rate, grad_scale, {}});
}

void Optimizer::count_step(const Tensor& found_inf) {
  const NoGradGuard no_grad;
  if (found_inf.defined()) {
    add_(step_count_, eq(found_inf, 0));
  } else {
    add_(step_count_, 1);
  }
}

int64_t Optimizer::steps() const { return static_cast<int64_t>(read_number(step_count_)); }

void Optimizer::set_steps(int64_t steps) { step_count_.fill_(steps); }

AdamWRule::AdamWRule(const std::vector<nn::NamedParameter>& parameters, AdamWOptions options)
    : options_(options),
      names_(names_of(parameters)),
      parameters_(tensors_of(parameters)),
      means_(zeros_for(parameters_)),
      squares_(zeros_for(parameters_)),
      decayed_(decay_flags(parameters_)) {}

void AdamWRule::update(const Optimizer::Update& update, const Tensor& step_count) const {
  this->update(all_of(parameters_), update, step_count);
}

void AdamWRule::update(std::span<const uint32_t> parameters, const Optimizer::Update& update,
                       const Tensor& step_count) const {
  for (const UpdateGroup& group : groups_by_cast(parameters_, parameters)) {
    const auto of = [&](const auto& list) { return chosen(list, group.numbers); };
    _fused_adamw_(of(parameters_), of(update.gradients), of(means_), of(squares_),
                  update.learning_rate, options_.beta1, options_.beta2, options_.weight_decay,
                  options_.epsilon, step_count, update.grad_scale, of(decayed_),
                  update.known_there.grad_factor, update.known_there.found_inf, group.casts);
    renew_casts(parameters_, group);
  }
}

std::vector<nn::StoredParameter> AdamWRule::state() const {
  std::vector<nn::StoredParameter> state;
  append(state, "exp_avg.", names_, means_);
  append(state, "exp_avg_sq.", names_, squares_);
  return state;
}

Sgd::Sgd(const std::vector<nn::NamedParameter>& parameters, SgdOptions options)
    : Optimizer(parameters),
      options_(options),
      names_(names_of(parameters)),
      parameters_(tensors_of(parameters)),
      buffers_(options.momentum > 0 ? zeros_for(parameters_) : std::vector<Tensor>()),
      decayed_(decay_flags(parameters_)) {}

void Sgd::update(const Update& update) { this->update(all_of(parameters_), update); }

void Sgd::update(std::span<const uint32_t> parameters, const Update& update) {
  for (const UpdateGroup& group : groups_by_cast(parameters_, parameters)) {
    const auto of = [&](const auto& list) { return chosen(list, group.numbers); };
    _fused_sgd_(of(parameters_), of(update.gradients), buffers_.empty() ? buffers_ : of(buffers_),
                update.learning_rate, options_.momentum, options_.nesterov, options_.weight_decay,
                update.grad_scale, of(decayed_), update.known_there.grad_factor,
                update.known_there.found_inf, group.casts);
    renew_casts(parameters_, group);
  }
}

std::vector<std::string> Sgd::state_names() const {
  if (options_.momentum > 0) return {"momentum_buffer"};
  return {};
}

std::vector<nn::StoredParameter> Sgd::state() const {
  std::vector<nn::StoredParameter> state;
  append(state, "momentum_buffer.", names_, buffers_);
  return state;
}

}  // namespace lockstep::train
