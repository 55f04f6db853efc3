#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

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
  void replace(std::shared_ptr<const JobControl::Listener> listener,
               std::unique_lock<std::mutex>& lock);
  bool has_failure_to_tell() const;
  bool has_message_to_tell() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<int, std::string>> messages_;
  size_t message_bytes_ = 0;
  std::optional<Failure> failure_;
  std::shared_ptr<const JobControl::Listener> listener_;
  const JobControl::Listener* calling_ = nullptr;
  bool failure_told_ = false;  ///< whether this listener was told of the failure
  bool stopping_ = false;
  ServiceThread thread_;  ///< started with the first listener
};

}  // namespace lockstep::dist
