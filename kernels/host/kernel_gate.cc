#include "kernels/host/kernel_gate.h"

#include <new>

namespace lockstep::host {

void KernelGate::set_limit(int limit) {
  const MutexLock lock(mutex_);
  limit_ = limit;
  changed_.notify_all();
}

bool KernelGate::enter(int priority) {
  if (limit_.load(std::memory_order_relaxed) == 0) [[likely]] {
    return false;
  }
  UniqueLock lock(mutex_);
  const auto place = waiting_.insert(priority);
  changed_.wait(lock, [&]() LS_REQUIRES(mutex_) {
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
  const MutexLock lock(mutex_);
  return waiting_.size();
}

void KernelGate::leave() {
  const MutexLock lock(mutex_);
  --running_;
  changed_.notify_all();
}

void KernelGate::reset_after_fork() {
  running_ = 0;
  waiting_.clear();
  ::new (&changed_) CondVar;  // its count of waiters is the parent's
}

}  // namespace lockstep::host
