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

bool is_of_type(const Tensor& tensor, const ValueType& type, bool but_for_sizes) {
  if (tensor.dtype() != type.dtype || tensor.device() != type.device) return false;
  if (but_for_sizes) return tensor.sizes().size() == type.sizes.size();
  return same(tensor.sizes(), type.sizes) && same(tensor.strides(), type.strides);
}

bool is_as(const Tensor& tensor, const Guard::Input& input, bool but_for_sizes) {
  if (!tensor.defined() || !input.defined) return tensor.defined() == input.defined;
  return tensor.requires_grad() == input.requires_grad &&
         tensor.is_inference() == input.is_inference &&
         is_of_type(tensor, input.type, but_for_sizes);
}

/// What input `i` of the call has in common with others.
Guard::Sharing sharing_of(const CompiledArguments& call, size_t i) {
  Guard::Sharing sharing;
  const Tensor& tensor = call.inputs[i];
  if (!tensor.defined()) return sharing;
  const auto look_at = [&](const Tensor& other, size_t place) {
    if (!other.defined() || other.storage() != tensor.storage()) return;
    sharing.memory = std::min(sharing.memory, place);
    if (other.is_same(tensor)) sharing.tensor = std::min(sharing.tensor, place);
  };
  for (size_t k = 0; k < i; ++k) look_at(call.inputs[k], k);
  for (size_t k = 0; k < call.parameters.size(); ++k) {
    look_at(call.parameters[k], call.inputs.size() + k);
  }
  return sharing;
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
  for (size_t i = 0; i < call.inputs.size(); ++i) guard.sharing.push_back(sharing_of(call, i));
  guard.records = is_grad_enabled();
  guard.inference_mode = is_inference_mode_enabled();
  guard.autocast = state_of_casts();
  guard.default_device = lockstep::default_device();
  return guard;
}

bool Guard::holds(const CompiledArguments& call) const {
  return holds(call, /*but_for_sizes=*/false);
}
bool Guard::holds_but_for_sizes(const CompiledArguments& call) const {
  return holds(call, /*but_for_sizes=*/true);
}

bool Guard::holds(const CompiledArguments& call, bool but_for_sizes) const {
  if (call.variant != variant || records != is_grad_enabled() ||
      inference_mode != is_inference_mode_enabled() || autocast != state_of_casts() ||
      default_device != lockstep::default_device() || sharing.size() != call.inputs.size() ||
      inputs.size() != call.inputs.size() + call.parameters.size()) {
    return false;
  }
  size_t at = 0;
  for (const TensorList tensors : {call.inputs, call.parameters}) {
    for (const Tensor& tensor : tensors) {
      if (!is_as(tensor, inputs[at++], but_for_sizes)) return false;
    }
  }
  for (size_t i = 0; i < sharing.size(); ++i) {
    if (sharing_of(call, i) != sharing[i]) return false;
  }
  return true;
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
  if (got.sharing != recorded.sharing) {
    const bool share = std::ranges::any_of(
        got.sharing, [](const Guard::Sharing& each) { return each.memory != Guard::kNone; });
    return share ? "inputs share memory in another way" : "inputs do not share memory";
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
