#include "train/optimizer/optimizer.h"

#include <numeric>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/phase.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "train/optimizer/kept_casts.h"
#include "train/optimizer/read_back.h"

namespace lockstep::train {

namespace {

constexpr std::string_view kAverage = "average";

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

void append(std::vector<nn::StoredParameter>& state, const std::string& prefix,
            const std::vector<std::string>& names, const std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) state.push_back({prefix + names[i], tensors[i]});
}

}  // namespace

Optimizer::Optimizer(const std::vector<nn::NamedParameter>& parameters)
    : all_(parameters.size()),
      step_count_(
          zeros({}, {DType::kF64, parameters.empty() ? kCPU : parameters[0].tensor.device()})) {
  std::iota(all_.begin(), all_.end(), 0);
}

void Optimizer::step(const std::vector<Tensor>& gradients, double learning_rate, double grad_scale,
                     const DeviceScalars& known_there) {
  const PhaseGuard phase(Phase::kOptimizer);
  const NoGradGuard no_grad;
  count_step(known_there.found_inf);
  const Update update{.gradients = gradients,
                      .learning_rate = learning_rate,
                      .grad_scale = grad_scale,
                      .known_there = known_there,
                      .sharers = group_};
  update_parts(update);
  update_groups(all_, update);
  if (keeps_averages()) move_averages(all_, known_there.found_inf);
}

void Optimizer::step_part(std::span<const uint32_t> parameters,
                          const std::vector<Tensor>& gradients, double learning_rate,
                          double grad_scale, const DeviceScalars& known_there) {
  const PhaseGuard phase(Phase::kOptimizer);
  const NoGradGuard no_grad;
  update_groups(parameters, {gradients, learning_rate, grad_scale, known_there});
  if (keeps_averages()) move_averages(parameters, known_there.found_inf);
}

void Optimizer::choose_groups(std::vector<Group> groups, std::vector<size_t> group_of) {
  LS_ASSERT(group_of.size() == all_.size());
  groups_ = std::move(groups);
  group_of_ = std::move(group_of);
}

void Optimizer::update_groups(std::span<const uint32_t> parameters, const Update& update) {
  if (groups_.empty()) return this->update(parameters, update);
  std::vector<std::vector<uint32_t>> members(groups_.size());
  for (const uint32_t each : parameters) members[group_of_[each]].push_back(each);
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (!members[i].empty()) this->update(members[i], of_group(members[i].front(), update));
  }
}

Optimizer::Update Optimizer::of_group(uint32_t number, const Update& update) const {
  if (groups_.empty()) return update;
  const Group& group = groups_[group_of_[number]];
  return {update.gradients,   update.learning_rate * group.rate_factor,
          update.grad_scale,  update.known_there,
          group.weight_decay, update.sharers};
}

void Optimizer::count_step(const Tensor& found_inf) {
  const NoGradGuard no_grad;
  if (found_inf.defined()) {
    add_(step_count_, eq(found_inf, 0));
  } else {
    add_(step_count_, 1);
  }
}

void Optimizer::keep_averages(const std::vector<nn::NamedParameter>& parameters, double decay) {
  average_decay_ = decay;
  for (const nn::NamedParameter& each : parameters) {
    averages_.push_back(
        {each.name, each.tensor, zeros(each.tensor.sizes(), each.tensor.options())});
  }
}

void Optimizer::move_averages(std::span<const uint32_t> parameters, const Tensor& found_inf) {
  // The device counts the steps, and knows alone whether this one is skipped.
  const Tensor is_first = to(le(step_count_, 1), DType::kF64);
  Tensor share = is_first * average_decay_ + (1 - average_decay_);
  if (found_inf.defined()) share = share * to(eq(found_inf, 0), DType::kF64);
  share = share.to(DType::kF32);
  for (const uint32_t each : parameters) {
    lerp_(averages_[each].value, averages_[each].parameter, share);
  }
}

void Optimizer::exchange_averages() {
  const NoGradGuard no_grad;
  for (const Average& each : averages_) {
    const Tensor parameter = each.parameter.clone();
    each.parameter.copy_(each.value);
    each.value.copy_(parameter);
  }
}

std::vector<std::string> Optimizer::state_names() const {
  std::vector<std::string> names = rule_state_names();
  if (keeps_averages()) names.emplace_back(kAverage);
  return names;
}

bool Optimizer::keeps_state(std::string_view name, const nn::NamedParameter& parameter) const {
  return name == kAverage || rule_keeps(name, parameter);
}

Dims Optimizer::state_sizes(std::string_view name, const nn::NamedParameter& parameter) const {
  return name == kAverage ? to_dims(parameter.tensor.sizes()) : rule_state_sizes(name, parameter);
}

std::optional<int> Optimizer::state_owner(std::string_view name, size_t number) const {
  return name == kAverage ? std::nullopt : rule_state_owner(number);
}

std::vector<nn::StoredParameter> Optimizer::state() const {
  std::vector<nn::StoredParameter> state = rule_state();
  for (const Average& each : averages_) state.push_back({"average." + each.name, each.value});
  return state;
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

void AdamWRule::update(std::span<const uint32_t> parameters, const Optimizer::Update& update,
                       const Tensor& step_count) const {
  for (const UpdateGroup& group : groups_by_cast(parameters_, parameters)) {
    const auto of = [&](const auto& list) { return chosen(list, group.numbers); };
    _fused_adamw_(of(parameters_), of(update.gradients), of(means_), of(squares_),
                  update.learning_rate, options_.beta1, options_.beta2,
                  update.decay_or(options_.weight_decay), options_.epsilon, step_count,
                  update.grad_scale, of(decayed_), update.known_there.grad_factor,
                  update.known_there.found_inf, group.casts, update.known_there.rate_factor);
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

void Sgd::update(std::span<const uint32_t> parameters, const Update& update) {
  for (const UpdateGroup& group : groups_by_cast(parameters_, parameters)) {
    const auto of = [&](const auto& list) { return chosen(list, group.numbers); };
    _fused_sgd_(of(parameters_), of(update.gradients), buffers_.empty() ? buffers_ : of(buffers_),
                update.learning_rate, options_.momentum, options_.nesterov,
                update.decay_or(options_.weight_decay), update.grad_scale, of(decayed_),
                update.known_there.grad_factor, update.known_there.found_inf, group.casts,
                update.known_there.rate_factor);
    renew_casts(parameters_, group);
  }
}

std::vector<std::string> Sgd::rule_state_names() const {
  if (options_.momentum > 0) return {"momentum_buffer"};
  return {};
}

std::vector<nn::StoredParameter> Sgd::rule_state() const {
  std::vector<nn::StoredParameter> state;
  append(state, "momentum_buffer.", names_, buffers_);
  return state;
}

Lion::Lion(const std::vector<nn::NamedParameter>& parameters, LionOptions options)
    : Optimizer(parameters),
      options_(options),
      names_(names_of(parameters)),
      parameters_(tensors_of(parameters)),
      means_(zeros_for(parameters_)),
      decayed_(decay_flags(parameters_)) {}

void Lion::update(std::span<const uint32_t> parameters, const Update& update) {
  for (const UpdateGroup& group : groups_by_cast(parameters_, parameters)) {
    const auto of = [&](const auto& list) { return chosen(list, group.numbers); };
    _fused_lion_(of(parameters_), of(update.gradients), of(means_), update.learning_rate,
                 options_.beta1, options_.beta2, update.decay_or(options_.weight_decay),
                 update.grad_scale, of(decayed_), update.known_there.grad_factor,
                 update.known_there.found_inf, group.casts, update.known_there.rate_factor);
    renew_casts(parameters_, group);
  }
}

std::vector<nn::StoredParameter> Lion::rule_state() const {
  std::vector<nn::StoredParameter> state;
  append(state, "exp_avg.", names_, means_);
  return state;
}

}  // namespace lockstep::train
