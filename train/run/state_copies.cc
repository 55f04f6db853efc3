#include "train/run/state_copies.h"

#include "autograd/grad_mode.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/pinned.h"

namespace lockstep::train {

void StateCopies::add(const Tensor& tensor) {
  const NoGradGuard no_grad;
  device_ = tensor.device();
  if (next_ == copies_.size()) copies_.emplace_back();
  Tensor& copy = copies_[next_++];
  const bool fits =
      copy.defined() && copy.dtype() == tensor.dtype() && same(copy.sizes(), tensor.sizes());
  if (!fits) copy = empty_pinned(tensor.sizes(), tensor.dtype(), tensor.device());
  copy_(copy, tensor, /*non_blocking=*/true);
}

void StateCopies::end() {
  copies_.resize(next_);
  arrived_.record(current_stream(device_));
}

int64_t StateCopies::bytes() const {
  int64_t bytes = 0;
  for (const Tensor& each : copies_) bytes += static_cast<int64_t>(each.nbytes());
  return bytes;
}

}  // namespace lockstep::train
