#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"
#include "dist/rendezvous/job_control.h"

namespace lockstep::dist {

/// Queue of messages and failures sent to a rank (JobControl), with the thread that calls its
/// listener. Thread-safe.
class ControlInbox {
 public:
  ControlInbox() = default;
  ~ControlInbox();

  /// Queues a message for the listener. Without a listener up to 1 MiB are kept; further messages
  /// are dropped.
  void deliver(int from, std::string message);
  /// Sets the failure; only the first call has an effect.
  void fail(Failure failure);
  std::optional<Failure> failure() const;
  /// See JobControl::listen. A listener may replace itself and must not throw.
  void listen(JobControl::Listener listener);
  /// Removes the listener.
  void stop_listening() noexcept;

 private:
  void run();
  void replace(std::shared_ptr<const JobControl::Listener> listener, UniqueLock<Mutex>& lock)
      LS_REQUIRES(mutex_);
  bool has_failure_to_tell() const LS_REQUIRES(mutex_);
  bool has_message_to_tell() const LS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::pair<int, std::string>> messages_ LS_GUARDED_BY(mutex_);
  size_t message_bytes_ LS_GUARDED_BY(mutex_) = 0;
  std::optional<Failure> failure_ LS_GUARDED_BY(mutex_);
  std::shared_ptr<const JobControl::Listener> listener_ LS_GUARDED_BY(mutex_);
  const JobControl::Listener* calling_ LS_GUARDED_BY(mutex_) = nullptr;
  /// Whether this listener was told of the failure.
  bool failure_told_ LS_GUARDED_BY(mutex_) = false;
  bool stopping_ LS_GUARDED_BY(mutex_) = false;
  ServiceThread thread_;  ///< started with the first listener
};

}  // namespace lockstep::dist
