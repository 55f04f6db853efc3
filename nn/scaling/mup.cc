#include "nn/scaling/mup.h"

#include <cmath>

#include "core/ops/pointwise/pointwise.h"

namespace lockstep::nn {

double Mup::deviation_of(WidthRole role) const {
  return role == WidthRole::kMatrix ? 1 / std::sqrt(width) : 1;
}

UpdateFactors Mup::update_of(WidthRole role, UpdateKind kind) const {
  switch (kind) {
    case UpdateKind::kElementwise:
      // The changes of a row's elements are aligned with what it reads, so that they add up.
      if (role == WidthRole::kMatrix) return {1 / width, width};
      break;
    case UpdateKind::kGradient:
      // All gradients are divided by the width, because the logits are. A matrix is to change by
      // that much; the others are not.
      if (role == WidthRole::kVector) return {width, 1 / width};
      break;
    case UpdateKind::kOrthogonal:
      // The spectral norm of a step, sqrt(rows / columns), is the same at any width, and is what
      // bounds the change of a layer's results (Yang, Simon & Bernstein 2023).
      break;
  }
  return {};
}

double Mup::attention_factor() const { return 1 / std::sqrt(head_width); }

std::optional<double> Mup::attention_scale(int64_t head_elements) const {
  const double factor = attention_factor();
  if (factor == 1) return std::nullopt;
  return factor / std::sqrt(static_cast<double>(head_elements));
}

Tensor multiplied(const Tensor& x, double factor) { return factor == 1 ? x : x * factor; }

}  // namespace lockstep::nn
