#pragma once

#include <lockstep/lockstep.h>

#include <vector>

/// Numbers within +-scale that libtorch's half of each example computes alike (fill_torch.h).
inline lockstep::Tensor numbers(const lockstep::Dims& sizes, double scale, double phase) {
  const lockstep::Tensor flat = lockstep::zeros(sizes).flatten();
  return (sin(lockstep::arange(flat.numel()) * 0.7 + phase) * scale).view(sizes);
}

/// Gives the parameters the same values on both sides.
inline void fill(const std::vector<lockstep::Tensor>& parameters, double scale) {
  const lockstep::NoGradGuard no_grad;
  double phase = 0;
  for (const auto& parameter : parameters) {
    parameter.copy_(numbers(lockstep::to_dims(parameter.sizes()), scale, ++phase));
  }
}
