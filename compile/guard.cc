#include "compile/guard.h"

#include <fmt/format.h>

#include "autograd/grad_mode.h"

namespace lockstep::compiler {

namespace {

std::string text_of(const Guard::Input& input) {
  if (!input.defined) return "undefined";
  return to_string(input.type) + (input.requires_grad ? " that requires grad" : "") +
         (input.is_inference ? " of inference mode" : "");
}

}  // namespace

Guard Guard::of(TensorList inputs) {
  Guard guard;
  guard.inputs.reserve(inputs.size());
  for (const Tensor& tensor : inputs) {
    if (!tensor.defined()) {
      guard.inputs.emplace_back();
      continue;
    }
    guard.inputs.push_back(
        {ValueType::of(tensor), true, tensor.requires_grad(), tensor.is_inference()});
    for (const Tensor& other : inputs) {
      if (&other == &tensor) break;
      if (other.defined() && other.storage() == tensor.storage()) guard.share_memory = true;
    }
  }
  guard.records = is_grad_enabled();
  guard.inference_mode = is_inference_mode_enabled();
  guard.autocast = autocast_state();
  guard.default_device = lockstep::default_device();
  return guard;
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
