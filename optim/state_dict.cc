#include "optim/state_dict.h"

#include "core/base/check.h"
#include "core/ops/factory/factory.h"

namespace lockstep::optim {

namespace {

constexpr std::string_view kNumber = "number.";

}  // namespace

void StateDict::add(const std::string& prefix, const StateDict& other) {
  for (const auto& [name, tensor] : other.tensors) tensors[prefix + name] = tensor;
  for (const auto& [name, number] : other.numbers) numbers[prefix + name] = number;
}

StateDict StateDict::part(const std::string& prefix) const {
  StateDict found;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) found.tensors[name.substr(prefix.size())] = tensor;
  }
  for (const auto& [name, number] : numbers) {
    if (name.starts_with(prefix)) found.numbers[name.substr(prefix.size())] = number;
  }
  return found;
}

nn::StateDict StateDict::as_tensors() const {
  nn::StateDict list;
  for (const auto& [name, tensor] : tensors) list.add(name, tensor);
  for (const auto& [name, number] : numbers) {
    list.add(std::string(kNumber) + name, full({}, number, {DType::kF64, kCPU}));
  }
  return list;
}

StateDict StateDict::from_tensors(const nn::StateDict& list) {
  StateDict state;
  for (const auto& [name, tensor] : list) {
    if (name.starts_with(kNumber)) {
      state.numbers[name.substr(kNumber.size())] = tensor.item<double>();
    } else {
      state.tensors[name] = tensor;
    }
  }
  return state;
}

}  // namespace lockstep::optim
