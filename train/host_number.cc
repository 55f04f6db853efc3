#include "train/host_number.h"

#include "core/ops/forms/pointwise.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"

namespace lockstep::train {

Tensor operator*(const Tensor& x, const HostNumber& number) {
  return number.place.defined() ? mul(x, number.place) : mul(x, number.value);
}

Tensor is_at_most(const Tensor& x, const HostNumber& number) {
  return number.place.defined() ? le(x, number.place) : le(x, number.value);
}

}  // namespace lockstep::train
