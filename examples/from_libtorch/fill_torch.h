#pragma once

#include <torch/torch.h>

#include <vector>

/// Numbers within +-scale that our half of each example computes alike (fill.h).
inline torch::Tensor numbers(torch::IntArrayRef sizes, double scale, double phase) {
  const torch::Tensor flat = torch::zeros(sizes).flatten();
  return (torch::sin(torch::arange(flat.numel()) * 0.7 + phase) * scale).view(sizes);
}

/// Gives the parameters the same values on both sides.
inline void fill(const std::vector<torch::Tensor>& parameters, double scale) {
  const torch::NoGradGuard no_grad;
  double phase = 0;
  for (const auto& parameter : parameters) {
    parameter.copy_(numbers(parameter.sizes(), scale, ++phase));
  }
}
