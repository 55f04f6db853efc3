#pragma once

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

/// `a + b`, where either may be undefined.
inline Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

/// What the backward of a norm needs to be differentiated, in simple operators. For elements x that
/// are normalised together over `dims`, with xhat = (x - mean) rstd, the map from a gradient of
/// xhat to rstd * project(gradient) is linear and symmetric: project(u) = u - mean(u) - xhat mean(u
/// xhat). A norm that does not centre has no mean(u).
struct NormProjection {
  Tensor xhat;
  Tensor rstd;  ///< broadcasts with xhat
  Dims dims;
  bool centre;

  Tensor project(const Tensor& u) const {
    const Tensor rest = u - xhat * (u * xhat).mean(dims, true);
    return centre ? rest - u.mean(dims, true) : rest;
  }
  /// Gradient of x in v . (rstd project(gw)) + c . xhat, for fixed v, gw and c; v and c may be
  /// undefined.
  Tensor second(const Tensor& v, const Tensor& gw, const Tensor& c) const {
    Tensor total;  // of what multiplies xhat, and of what xhat moves
    if (v.defined()) {
      const Tensor bent = v * (gw * xhat).mean(dims, true) + gw * (v * xhat).mean(dims, true);
      const Tensor along = (v * project(gw)).mean(dims, true);
      total = rstd * (project(-(bent * rstd)) - xhat * rstd * along);
    }
    return c.defined() ? plus(total, rstd * project(c)) : total;
  }
};

}  // namespace lockstep
