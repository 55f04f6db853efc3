#pragma once

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

/// `a + b`, where either may be undefined.
inline Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

/// The derivative of a norm's backward, composed of simple operators. For elements x that are
/// normalised together over `dims`, with xhat = (x - mean) rstd, backward maps a gradient of xhat
/// to rstd * project(gradient), which is linear and symmetric: project(u) = u - mean(u) - xhat
/// mean(u xhat). A norm that does not subtract the mean (RMS norm) has no mean(u).
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
    Tensor total;  // sum of the contributions through v and through c
    if (v.defined()) {
      const Tensor bent = v * (gw * xhat).mean(dims, true) + gw * (v * xhat).mean(dims, true);
      const Tensor along = (v * project(gw)).mean(dims, true);
      total = rstd * (project(-(bent * rstd)) - xhat * rstd * along);
    }
    return c.defined() ? plus(total, rstd * project(c)) : total;
  }
};

}  // namespace lockstep
