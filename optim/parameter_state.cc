#include "optim/parameter_state.h"

#include <algorithm>

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"

namespace lockstep::optim {

namespace {

bool can_be_fused(const Tensor& parameter) {
  return parameter.is_contiguous() &&
         (parameter.dtype() == DType::kF32 || parameter.dtype() == DType::kF64);
}

}  // namespace

const Tensor& ParameterState::tensor(size_t i) {
  if (!tensors[i].defined()) tensors[i] = zeros_like(parameter);
  return tensors[i];
}

UpdateBatches divide(ParameterStates states, bool by_steps) {
  UpdateBatches batches;
  for (ParameterState* const state : states) {
    if (!can_be_fused(state->parameter)) {
      batches.single.push_back(state);
      continue;
    }
    const auto batch = std::ranges::find_if(batches.fused, [&](const auto& each) {
      const ParameterState& first = *each.front();
      return first.parameter.dtype() == state->parameter.dtype() &&
             first.parameter.device() == state->parameter.device() &&
             (!by_steps || first.steps == state->steps);
    });
    if (batch == batches.fused.end()) {
      batches.fused.push_back({state});
    } else {
      batch->push_back(state);
    }
  }
  return batches;
}

std::vector<Tensor> parameters_of(ParameterStates states) {
  std::vector<Tensor> list;
  for (const ParameterState* const state : states) list.push_back(state->parameter);
  return list;
}

std::vector<Tensor> gradients_of(ParameterStates states) {
  std::vector<Tensor> list;
  for (const ParameterState* const state : states) list.push_back(state->gradient());
  return list;
}

std::vector<Tensor> tensors_of(ParameterStates states, size_t i) {
  std::vector<Tensor> list;
  for (ParameterState* const state : states) list.push_back(state->tensor(i));
  return list;
}

Tensor effective_gradient(const ParameterState& state, double weight_decay, bool maximize) {
  const Tensor gradient = maximize ? neg(state.gradient()) : state.gradient();
  return weight_decay == 0 ? gradient : add(gradient, state.parameter, weight_decay);
}

}  // namespace lockstep::optim
