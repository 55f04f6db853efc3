#include "dist/rendezvous/control_inbox.h"

#include <memory>
#include <utility>

#include "dist/rendezvous/store_limits.h"

namespace lockstep::dist {

ControlInbox::~ControlInbox() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ControlInbox::deliver(int from, std::string message) {
  {
    const MutexLock lock(mutex_);
    if (message_bytes_ > kHeldBytes) return;
    message_bytes_ += message.size() + 1;
    messages_.emplace_back(from, std::move(message));
  }
  changed_.notify_all();
}

void ControlInbox::fail(Failure failure) {
  {
    const MutexLock lock(mutex_);
    if (failure_) return;
    failure_ = std::move(failure);
  }
  changed_.notify_all();
}

std::optional<Failure> ControlInbox::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

void ControlInbox::listen(JobControl::Listener listener) {
  auto replacement = std::make_shared<const JobControl::Listener>(std::move(listener));
  UniqueLock lock(mutex_);
  if (!thread_.started()) thread_.start("ls-listener", [this] { run(); });
  replace(std::move(replacement), lock);
}

void ControlInbox::stop_listening() noexcept {
  UniqueLock lock(mutex_);
  if (thread_.started()) replace(nullptr, lock);
}

void ControlInbox::replace(std::shared_ptr<const JobControl::Listener> listener,
                           UniqueLock<Mutex>& lock) {
  std::swap(listener_, listener);
  failure_told_ = false;
  changed_.notify_all();
  if (thread_.is_this_one()) return;
  changed_.wait(lock, [&]() LS_REQUIRES(mutex_) {
    return calling_ == nullptr || calling_ != listener.get();
  });
}

bool ControlInbox::has_failure_to_tell() const {
  return listener_ && failure_ && !failure_told_ && listener_->on_failure;
}

bool ControlInbox::has_message_to_tell() const {
  return listener_ && !messages_.empty() && listener_->on_message;
}

void ControlInbox::run() {
  UniqueLock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&]() LS_REQUIRES(mutex_) {
      return stopping_ || has_failure_to_tell() || has_message_to_tell();
    });
    if (stopping_) return;
    auto listener = listener_;
    calling_ = listener.get();
    if (has_failure_to_tell()) {
      failure_told_ = true;
      const Failure failure = *failure_;
      lock.unlock();
      listener->on_failure(failure);
    } else {
      const auto [from, message] = std::move(messages_.front());
      messages_.pop_front();
      message_bytes_ -= message.size() + 1;
      lock.unlock();
      listener->on_message(from, message);
    }
    // Destroy the listener outside of the lock.
    listener.reset();
    lock.lock();
    calling_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace lockstep::dist
