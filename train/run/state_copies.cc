#include "train/run/state_copies.h"

#include <chrono>

#include "autograd/grad_mode.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/pinned.h"

namespace lockstep::train {

void StateCopies::begin() {
  next_ = 0;
  left_.clear();
  leaves_some_ = false;
}

void StateCopies::add(const Tensor& tensor, bool now) {
  const NoGradGuard no_grad;
  if (tensor.device() != kCPU) device_ = tensor.device();
  if (next_ == copies_.size()) copies_.emplace_back();
  Tensor& copy = copies_[next_++];
  const bool fits =
      copy.defined() && copy.dtype() == tensor.dtype() && same(copy.sizes(), tensor.sizes());
  if (!fits) copy = empty_pinned(tensor.sizes(), tensor.dtype(), tensor.device());
  left_.emplace_back();
  if (now || tensor.device() != kCPU) {
    copy_(copy, tensor, /*non_blocking=*/true);
  } else {
    left_.back() = tensor;
    leaves_some_ = true;
  }
}

void StateCopies::end() {
  copies_.resize(next_);
  arrived_.record(current_stream(device_));
  may_change_ = false;
}

double StateCopies::wait_to_change() const {
  // Later work on the device's stream runs behind the copies there.
  if (!leaves_some_) return 0;
  const auto start = std::chrono::steady_clock::now();
  may_change_.wait(false);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void StateCopies::finish() {
  try {
    copy_those_left();
  } catch (...) {
    may_change_ = true;
    may_change_.notify_all();
    throw;
  }
  may_change_ = true;
  may_change_.notify_all();
  arrived_.synchronize();
}

void StateCopies::copy_those_left() {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < left_.size(); ++i) {
    if (left_[i].defined()) copy_(copies_[i], left_[i]);
  }
  left_.clear();
}

}  // namespace lockstep::train
