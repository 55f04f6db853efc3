#include "kernels/host/kernel_gate.h"

#include <new>

namespace lockstep::host {

void KernelGate::set_limit(int limit) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
  changed_.notify_all();
}

bool KernelGate::enter(int priority) {
  if (limit_.load(std::memory_order_relaxed) == 0) [[likely]] {
    return false;
  }
  std::unique_lock lock(mutex_);
  const auto place = waiting_.insert(priority);
  changed_.wait(lock, [&] {
    const int limit = limit_;
    return limit == 0 || (running_ < limit && priority == *waiting_.begin());
  });
  waiting_.erase(place);
  ++running_;
  // There may be room for another kernel.
  changed_.notify_all();
  return true;
}

size_t KernelGate::waiting() {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void KernelGate::leave() {
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_all();
}

void KernelGate::reset_after_fork() {
  running_ = 0;
  waiting_.clear();
  ::new (&changed_) std::condition_variable;  // its count of waiters is the parent's
}

}  // namespace lockstep::host
