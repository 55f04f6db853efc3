#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::optim {

/// A parameter of an optimizer, and what is kept for it between steps.
struct ParameterState {
  std::string name;         ///< in a StateDict: its name, or its number if that is not known
  std::string description;  ///< in errors: "parameter fc1.weight"
  Tensor parameter;
  int64_t steps = 0;            ///< that it took part in, with the one that is being taken
  std::vector<Tensor> tensors;  ///< in the order of their names; undefined until they are needed
  std::vector<double> numbers;

  const Tensor& gradient() const { return parameter.grad(); }
  /// The i-th tensor, which begins as zeros.
  const Tensor& tensor(size_t i);
};

/// Parameters that a step updates; pointers to them.
using ParameterStates = std::span<ParameterState* const>;

/// Parameters of one step, divided by how they can be updated.
struct UpdateBatches {
  /// Each list by one fused operator (core/ops/optimizer): all are contiguous, on one device, and
  /// f32 or f64.
  std::vector<std::vector<ParameterState*>> fused;
  std::vector<ParameterState*> single;
};

/// Divides `states`. With `by_steps`, those in a list have taken part in the same number of steps.
UpdateBatches divide(ParameterStates states, bool by_steps);

// Lists as fused operators take them.
std::vector<Tensor> parameters_of(ParameterStates states);
std::vector<Tensor> gradients_of(ParameterStates states);
/// The i-th tensor that is kept for each.
std::vector<Tensor> tensors_of(ParameterStates states, size_t i);

/// The gradient as formulas use it: negated to maximize, plus weight_decay times the parameter.
Tensor effective_gradient(const ParameterState& state, double weight_decay, bool maximize);

}  // namespace lockstep::optim
