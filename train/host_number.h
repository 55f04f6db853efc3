#pragma once

#include "core/tensor/tensor.h"

namespace lockstep::train {

/// A number that work on a device computes with: the host's value when the work is queued, or, for
/// work of a CUDA graph, what `place`, f64 and 0-d on the device, holds when it runs. Both give the
/// same bits.
struct HostNumber {
  double value = 0;
  Tensor place;  ///< undefined outside of graphs
};

Tensor operator*(const Tensor& x, const HostNumber& number);
/// Where x <= number.
Tensor is_at_most(const Tensor& x, const HostNumber& number);

}  // namespace lockstep::train
