#include "worker_stream.h"

#include <csignal>
#include <utility>

namespace worker {

using lockstep::MutexLock;
using lockstep::UniqueLock;

WorkerStream::~WorkerStream() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

uint64_t WorkerStream::push(std::function<void()> task) {
  uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    if (!thread_.joinable()) {
      // The thread inherits a full mask: signals are for the program's threads.
      sigset_t all, before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      thread_ = std::thread([this] { work(); });
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    tasks_.push_back(std::move(task));
    number = ++submitted_;
  }
  changed_.notify_all();
  return number;
}

uint64_t WorkerStream::submitted() const {
  const MutexLock lock(mutex_);
  return submitted_;
}

bool WorkerStream::reached(uint64_t count) const {
  const MutexLock lock(mutex_);
  return done_ >= count;
}

void WorkerStream::wait(uint64_t count) const {
  UniqueLock lock(mutex_);
  changed_.wait(lock, [&]() LS_REQUIRES(mutex_) { return done_ >= count; });
}

void WorkerStream::throw_error(uint64_t count) {
  std::exception_ptr error;
  {
    const MutexLock lock(mutex_);
    if (error_ == nullptr || error_number_ > count) return;
    error = std::exchange(error_, nullptr);
  }
  std::rethrow_exception(error);
}

void WorkerStream::work() {
  UniqueLock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&]() LS_REQUIRES(mutex_) { return ends_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    task = nullptr;  // what the task owns is freed before the task counts as done
    lock.lock();
    ++done_;
    if (error != nullptr && error_ == nullptr) {
      error_ = std::move(error);
      error_number_ = done_;
    }
    changed_.notify_all();
  }
}

}  // namespace worker
