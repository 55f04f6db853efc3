#include "compile/guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/grad_mode.h"

namespace lockstep::compiler {

namespace {

std::string text_of(const Guard::Input& input) {
  if (!input.defined) return "undefined";
  return to_string(input.type) + (input.requires_grad ? " that requires grad" : "") +
         (input.is_inference ? " of inference mode" : "");
}

/// The autocast state as far as it decides what is computed.
AutocastState state_of_casts() {
  AutocastState state = autocast_state();
  state.cache_enabled = true;
  return state;
}

bool is_of_type(const Tensor& tensor, const ValueType& type) {
  return tensor.dtype() == type.dtype && same(tensor.sizes(), type.sizes) &&
         same(tensor.strides(), type.strides) && tensor.device() == type.device;
}

bool is_as(const Tensor& tensor, const Guard::Input& input) {
  if (!tensor.defined() || !input.defined) return tensor.defined() == input.defined;
  return tensor.requires_grad() == input.requires_grad &&
         tensor.is_inference() == input.is_inference && is_of_type(tensor, input.type);
}

/// Whether two of the inputs, or an input and a parameter, lie in one memory.
bool share_memory(const CompiledArguments& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& tensor = call.inputs[i];
    if (!tensor.defined()) continue;
    const auto is_shared = [&](const Tensor& other) {
      return other.defined() && other.storage() == tensor.storage();
    };
    if (std::ranges::any_of(call.inputs.first(i), is_shared) ||
        std::ranges::any_of(call.parameters, is_shared)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Guard Guard::of(const CompiledArguments& call) {
  Guard guard;
  guard.inputs.reserve(call.inputs.size() + call.parameters.size());
  for (const TensorList tensors : {call.inputs, call.parameters}) {
    for (const Tensor& tensor : tensors) {
      guard.inputs.emplace_back();
      if (!tensor.defined()) continue;
      guard.inputs.back() = {ValueType::of(tensor), true, tensor.requires_grad(),
                             tensor.is_inference()};
    }
  }
  guard.variant = call.variant;
  guard.share_memory = compiler::share_memory(call);
  guard.records = is_grad_enabled();
  guard.inference_mode = is_inference_mode_enabled();
  guard.autocast = state_of_casts();
  guard.default_device = lockstep::default_device();
  return guard;
}

bool Guard::holds(const CompiledArguments& call) const {
  if (call.variant != variant || records != is_grad_enabled() ||
      inference_mode != is_inference_mode_enabled() || autocast != state_of_casts() ||
      default_device != lockstep::default_device() ||
      inputs.size() != call.inputs.size() + call.parameters.size()) {
    return false;
  }
  size_t at = 0;
  for (const TensorList tensors : {call.inputs, call.parameters}) {
    for (const Tensor& tensor : tensors) {
      if (!is_as(tensor, inputs[at++])) return false;
    }
  }
  return compiler::share_memory(call) == share_memory;
}

std::string difference(const Guard& got, const Guard& recorded) {
  if (got.inputs.size() != recorded.inputs.size()) {
    return fmt::format("there are {} inputs, not {}", got.inputs.size(), recorded.inputs.size());
  }
  for (size_t i = 0; i < got.inputs.size(); ++i) {
    if (got.inputs[i] == recorded.inputs[i]) continue;
    return fmt::format("input {} is {}, not {}", i, text_of(got.inputs[i]),
                       text_of(recorded.inputs[i]));
  }
  if (got.variant != recorded.variant) return "it is another variant of the function";
  if (got.share_memory != recorded.share_memory) {
    return got.share_memory ? "inputs share memory" : "inputs do not share memory";
  }
  if (got.records != recorded.records) {
    return got.records ? "grad mode is on" : "grad mode is off";
  }
  if (got.inference_mode != recorded.inference_mode) {
    return got.inference_mode ? "inference mode is on" : "inference mode is off";
  }
  if (got.autocast != recorded.autocast) return "autocast is set otherwise";
  if (got.default_device != recorded.default_device) {
    return fmt::format("the default device is {}, not {}", to_string(got.default_device),
                       to_string(recorded.default_device));
  }
  return {};
}

}  // namespace lockstep::compiler
