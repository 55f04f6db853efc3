#include "dist/nccl/nccl_launcher.h"

#include <exception>
#include <future>
#include <utility>

namespace lockstep::dist {

NcclLauncher::NcclLauncher() {
  thread_.start("nccl launch", [this] { work(); });
}

NcclLauncher::~NcclLauncher() {
  if (thread_.left_behind()) return;
  {
    const MutexLock guard(lock_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void NcclLauncher::add(std::function<void()> task) {
  const MutexLock guard(lock_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void NcclLauncher::run(const std::function<void()>& task) {
  if (thread_.left_behind()) return;
  if (thread_.is_this_one()) return task();
  std::promise<void> done;
  std::exception_ptr error;
  add([&] {
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    done.set_value();  // the error is the caller's alone from here on
  });
  done.get_future().get();
  if (error) std::rethrow_exception(std::move(error));
}

void NcclLauncher::work() {
  UniqueLock lock(lock_);
  for (;;) {
    changed_.wait(lock, [&]() LS_REQUIRES(lock_) { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds is freed without the lock
    lock.lock();
  }
}

}  // namespace lockstep::dist
