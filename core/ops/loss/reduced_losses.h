#pragma once

#include "core/ops/loss/loss.h"

namespace lockstep {

/// The losses as they are, their mean or their sum; `reduction` is a Reduction's number.
inline Tensor reduced(const Tensor& losses, int64_t reduction) {
  switch (static_cast<Reduction>(reduction)) {
    case Reduction::kMean:
      return losses.mean();
    case Reduction::kSum:
      return losses.sum();
    default:
      return losses;
  }
}

}  // namespace lockstep
