#pragma once

#include <functional>

#include "core/tensor/tensor.h"

namespace lockstep::optim {

/// A point of the line along which a step is searched.
struct LinePoint {
  double t = 0;  ///< distance from the start, in units of the direction
  double loss = 0;
  Tensor gradient;   ///< of all parameters, flat
  double slope = 0;  ///< gradient times direction
};

struct WolfeResult {
  LinePoint point;
  int64_t evaluations = 0;
};

/// Searches a step that satisfies the strong Wolfe conditions (Nocedal & Wright 2006, algorithms
/// 3.5 and 3.6, with cubic interpolation), as torch.optim.LBFGS does: sufficient decrease with
/// c1 = 1e-4, slope with c2 = 0.9. `evaluate(t)` computes the point at t. The first step tried is
/// `t`, the search ends after 25 trials or when the bracket, times `direction_size` (the largest
/// element of the direction), is below `tolerance_change`.
WolfeResult search_strong_wolfe(const std::function<LinePoint(double t)>& evaluate,
                                const LinePoint& start, double t, double direction_size,
                                double tolerance_change);

}  // namespace lockstep::optim
