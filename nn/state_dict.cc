#include "nn/state_dict.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/set_data.h"
#include "core/base/check.h"
#include "nn/module.h"

namespace lockstep::nn {

void StateDict::add(std::string_view name, Tensor tensor) {
  LS_CHECK(find(name) == nullptr, Error,
           "[state_dict] \"{}\" is taken: expected a name that is new. Choose another.", name);
  tensors_.push_back({std::string(name), std::move(tensor)});
}

const Tensor* StateDict::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &NamedParameter::name);
  return found == tensors_.end() ? nullptr : &found->tensor;
}

const Tensor& StateDict::at(std::string_view name) const {
  const Tensor* const found = find(name);
  if (found == nullptr) [[unlikely]] {
    std::vector<std::string_view> names;
    for (const NamedParameter& each : tensors_) names.push_back(each.name);
    throw Error(fmt::format("[state_dict] there is no tensor \"{}\": expected one of {}.", name,
                            fmt::join(names, ", ")));
  }
  return *found;
}

void Module::collect_state(const std::string& prefix, StateDict& state) const {
  for (const Tensors& tensors : {own_parameters_, own_buffers_}) {
    for (const NamedParameter& each : tensors) state.add(prefix + each.name, each.tensor.detach());
  }
  for (const Child& child : children_)
    child.module->collect_state(prefix + child.name + ".", state);
}

StateDict Module::state_dict() const {
  const NoGradGuard no_grad;
  StateDict state;
  collect_state("", state);
  return state;
}

namespace {

void append_line(std::string& text, std::string_view what, const std::vector<std::string>& names) {
  if (!names.empty()) text += fmt::format("\n  {}: {}", what, fmt::join(names, ", "));
}

}  // namespace

StateMismatch Module::load_state_dict(const StateDict& state, bool strict) {
  const NoGradGuard no_grad;
  const StateDict own = state_dict();
  StateMismatch mismatch;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [name, tensor] : own) {
    const Tensor* const given = state.find(name);
    if (given == nullptr) {
      mismatch.missing.push_back(name);
    } else if (!same(given->sizes(), tensor.sizes())) {
      mismatch.misshapen.push_back(
          fmt::format("{} (expected {}, got {})", name, tensor.shape(), given->shape()));
    } else {
      copies.emplace_back(tensor, *given);
    }
  }
  for (const auto& [name, tensor] : state) {
    if (own.find(name) == nullptr) mismatch.unexpected.push_back(name);
  }
  if (strict && !mismatch.empty()) {
    std::string text = "[module] the state does not fit the module:";
    append_line(text, "missing", mismatch.missing);
    append_line(text, "unexpected", mismatch.unexpected);
    append_line(text, "of another shape", mismatch.misshapen);
    throw CheckpointError(text + "\nPass strict = false to load what fits.");
  }
  for (const auto& [into, from] : copies) into.copy_(from);
  return mismatch;
}

void Module::to(const TensorOptions& options) {
  const NoGradGuard no_grad;
  LS_CHECK(!options.dtype || is_floating(*options.dtype), DTypeError,
           "[module] expected a floating dtype for parameters, got {}.", to_string(*options.dtype));
  std::vector<std::pair<Tensor, Tensor>> moved;
  for (const Tensors& tensors : {named_parameters(), named_buffers()}) {
    for (const NamedParameter& each : tensors) {
      const DType dtype =
          is_floating(each.tensor.dtype()) && options.dtype ? *options.dtype : each.tensor.dtype();
      const Device device = options.device.value_or(each.tensor.device());
      const Tensor value = each.tensor.detach();
      if (dtype == each.tensor.dtype() && device == each.tensor.device()) continue;
      check_set_data(each.tensor, dtype);
      moved.emplace_back(each.tensor, value.to({dtype, device}));
    }
  }
  for (const auto& [tensor, value] : moved) set_data(tensor, value);
}

void Module::set_requires_grad(bool requires_grad) {
  for (const Tensor& parameter : parameters()) parameter.set_requires_grad(requires_grad);
}

}  // namespace lockstep::nn
