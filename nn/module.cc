#include "nn/module.h"

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/mix_bits.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/random_state_guard.h"

namespace lockstep::nn {

Module::Module(Module&& other) noexcept
    : own_parameters_(std::move(other.own_parameters_)),
      own_buffers_(std::move(other.own_buffers_)),
      deferred_(std::move(other.deferred_)),
      children_(std::move(other.children_)),
      parents_(std::move(other.parents_)),
      path_(std::move(other.path_)),
      training_(other.training_),
      statistics_log_(other.statistics_log_),
      hooks_(std::move(other.hooks_)),
      runner_(std::move(other.runner_)) {
  // Children that are members move after their parent, and then find it here.
  for (const Child& child : children_) {
    std::ranges::replace(child.module->parents_, &other, this);
  }
  for (Module* const parent : parents_) {
    for (Child& child : parent->children_) {
      if (child.module == &other) child.module = this;
    }
  }
  other.children_.clear();
  other.parents_.clear();
}

Module::~Module() {
  for (const Child& child : children_) std::erase(child.module->parents_, this);
  for (Module* const parent : parents_) {
    std::erase_if(parent->children_, [&](const Child& child) { return child.module == this; });
  }
}

struct Module::Collection {
  Tensors tensors;
  std::unordered_set<const TensorImpl*> known;  ///< those of `tensors`
};

void Module::collect(Tensors Module::*own, const std::string& prefix, Collection& found) const {
  for (const NamedParameter& each : this->*own) {
    const bool is_new = found.known.insert(each.tensor.impl()).second;
    if (is_new) found.tensors.push_back({prefix + each.name, each.tensor});
  }
  for (const Child& child : children_) child.module->collect(own, prefix + child.name + ".", found);
}

std::vector<NamedParameter> Module::named_parameters() const {
  Collection found;
  collect(&Module::own_parameters_, "", found);
  return std::move(found.tensors);
}

std::vector<NamedParameter> Module::named_buffers() const {
  Collection found;
  collect(&Module::own_buffers_, "", found);
  return std::move(found.tensors);
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> tensors;
  for (NamedParameter& parameter : named_parameters()) tensors.push_back(parameter.tensor);
  return tensors;
}

std::vector<StoredParameter> Module::stored_parameters() const {
  std::vector<StoredParameter> stored;
  for (const Tensors& tensors : {named_parameters(), named_buffers()}) {
    for (const NamedParameter& tensor : tensors) stored.push_back({tensor.name, tensor.tensor});
  }
  return stored;
}

Device Module::device() const {
  const std::vector<NamedParameter> all = named_parameters();
  return all.empty() ? default_device() : all.front().tensor.device();
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

int64_t Module::trained_parameter_count() const {
  int64_t count = 0;
  for (const Tensor& parameter : parameters()) {
    if (parameter.requires_grad()) count += parameter.numel();
  }
  return count;
}

const DeferredValues* Module::find_deferred(const Tensor& parameter) const {
  for (const DeferredValues& each : deferred_) {
    if (each.parameter.is_same(parameter)) return &each;
  }
  for (const Child& child : children_) {
    if (const DeferredValues* const found = child.module->find_deferred(parameter)) return found;
  }
  return nullptr;
}

void Module::fill_parameter(const Tensor& parameter, const Tensor& into) const {
  const DeferredValues* const found = find_deferred(parameter);
  LS_CHECK(found != nullptr, Error,
           "[module] a parameter {} of \"{}\" was given its values when it was made: expected one "
           "that was made under DeferValuesGuard.",
           parameter.shape(), path_);
  const NoGradGuard no_grad;
  const RandomStateGuard random_state_stays;
  default_generator().set_state(found->random);
  found->fill(into);
}

bool Module::fill_later(const Tensor& parameter, const FillValues& fill) {
  for (DeferredValues& each : deferred_) {
    if (!each.parameter.is_same(parameter)) continue;
    each.fill = fill;
    return true;
  }
  return std::ranges::any_of(
      children_, [&](const Child& child) { return child.module->fill_later(parameter, fill); });
}

void Module::zero_grad(bool set_to_none) const {
  const NoGradGuard no_grad;
  for (const Tensor& parameter : parameters()) {
    const Tensor& grad = parameter.grad();
    if (set_to_none || !grad.defined()) {
      parameter.set_grad({});
    } else if (grad.requires_grad()) {  // made under create_graph: replaced, to drop its history
      parameter.set_grad(zeros_like(grad));
    } else {
      grad.zero_();
    }
  }
}

void Module::train(bool on) {
  training_ = on;
  for (const Child& child : children_) child.module->train(on);
}

void Module::for_each(const std::function<void(Module&)>& visit) {
  visit(*this);
  for (const Child& child : children_) child.module->for_each(visit);
}

void Module::for_each(const std::function<void(const Module&)>& visit) const {
  visit(*this);
  for (const Child& child : children_) std::as_const(*child.module).for_each(visit);
}

ForwardHooks& Module::hooks() const {
  if (!hooks_) hooks_ = make_ref<ForwardHooks>();
  return *hooks_;
}

ForwardHookHandle Module::register_forward_pre_hook(ForwardPreHook hook) const {
  const uint64_t id = hooks().next_id++;
  hooks_->before.add(id, std::move(hook));
  return {hooks_, id};
}

ForwardHookHandle Module::register_forward_hook(ForwardHook hook) const {
  const uint64_t id = hooks().next_id++;
  hooks_->after.add(id, std::move(hook));
  return {hooks_, id};
}

void ForwardHookHandle::remove() {
  if (!hooks_) return;
  hooks_->before.remove(id_);
  hooks_->after.remove(id_);
  hooks_ = {};
}

namespace {

void check_replaced(const Module& module, std::span<const Tensor> tensors, const char* what) {
  for (const Tensor& each : tensors) {
    LS_CHECK(
        each.defined(), AutogradError,
        "[module] a forward hook of \"{}\" replaced an {} by an undefined tensor: expected one "
        "with values.",
        module.path(), what);
  }
}

}  // namespace

void Module::call_pre_hooks(std::span<Tensor> inputs) const {
  if (hooks_->before.empty()) return;
  hooks_->before.each([&](const ForwardPreHook& hook) { hook(*this, inputs); });
  check_replaced(*this, inputs, "input");
}

void Module::call_hooks(std::span<const Tensor> inputs, std::span<Tensor* const> outputs) const {
  if (hooks_->after.empty()) return;
  std::vector<Tensor> results;
  for (const Tensor* each : outputs) results.push_back(*each);
  hooks_->after.each([&](const ForwardHook& hook) { hook(*this, inputs, results); });
  check_replaced(*this, results, "output");
  for (size_t i = 0; i < results.size(); ++i) *outputs[i] = std::move(results[i]);
}

uint64_t mixed_hash(uint64_t hash, double number) {
  return mix_bits((hash + kGoldenRatio) ^ std::bit_cast<uint64_t>(number));
}

uint64_t block_options_hash(std::initializer_list<double> numbers) {
  uint64_t hash = numbers.size();
  for (const double number : numbers) hash = mixed_hash(hash, number);
  return hash;
}

PassState Module::pass_state() const {
  PassState state;
  add_pass_state(state);
  return state;
}

void Module::add_pass_state(PassState& state) const {
  for (const NamedParameter& each : own_parameters_) state.tensors.push_back(each.tensor);
  for (const NamedParameter& each : own_buffers_) state.tensors.push_back(each.tensor);
  state.has_buffers |= !own_buffers_.empty();
  state.modes = mixed_hash(state.modes, training_ ? 1 : 2);
  for (const Child& child : children_) {
    state.has_hooks |= child.module->has_forward_hooks();
    child.module->add_pass_state(state);
  }
}

Module& Module::apply(const std::function<void(Module&)>& visit) {
  for (const Child& child : children_) child.module->apply(visit);
  visit(*this);
  return *this;
}

void Module::log_statistics(StatisticsLog* log) {
  statistics_log_ = log;
  for (const Child& child : children_) child.module->log_statistics(log);
}

void Module::check_new_name(std::string_view name) const {
  const auto has_name = [name](const auto& each) { return each.name == name; };
  const bool used = std::ranges::any_of(own_parameters_, has_name) ||
                    std::ranges::any_of(own_buffers_, has_name) ||
                    std::ranges::any_of(children_, has_name);
  LS_CHECK(!used && !name.empty(), Error,
           "[module] \"{}\" is {}: expected a name that no other parameter, buffer or child of the "
           "module \"{}\" has. Choose another.",
           name, used ? "taken" : "no name", path_);
}

Tensor Module::register_parameter(std::string_view name, Tensor tensor) {
  check_new_name(name);
  DeferredValues deferred = take_deferred_values(tensor);
  if (deferred.fill) deferred_.push_back(std::move(deferred));
  tensor.set_requires_grad(true);
  own_parameters_.push_back({std::string(name), tensor});
  return tensor;
}

Tensor Module::register_buffer(std::string_view name, Tensor tensor) {
  check_new_name(name);
  LS_CHECK(!tensor.requires_grad(), AutogradError,
           "[module] buffer {} requires grad: expected a tensor that is not trained. detach() it, "
           "or register it as a parameter.",
           name);
  own_buffers_.push_back({std::string(name), tensor});
  return tensor;
}

void Module::register_module(std::string_view name, Module& child) {
  check_new_name(name);
  children_.push_back({std::string(name), &child});
  child.parents_.push_back(this);
  child.move_under(path_.empty() ? std::string(name) : path_ + "." + std::string(name));
}

void Module::move_under(const std::string& prefix) {
  path_ = path_.empty() ? prefix : prefix + "." + path_;
  for (const Child& child : children_) child.module->move_under(prefix);
}

}  // namespace lockstep::nn
