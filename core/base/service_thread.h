#pragma once

#include <functional>
#include <system_error>
#include <thread>
#include <utility>

namespace lockstep {

/// Throws OutOfMemoryError: the system refuses the thread `name`, with error number `error`. Names
/// the limits that may be the reason.
[[noreturn]] void refuse_thread(const char* name, int error);

/// Starts a thread, or throws as refuse_thread does. `name` is for the message.
template <class Body>
std::thread start_thread(const char* name, Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    refuse_thread(name, error.code().value());
  }
}

/// A background thread that belongs to an object and is joined in its destructor. Blocks all
/// signals of the process. In a child made by fork() there is nothing to join.
class ServiceThread {
 public:
  ServiceThread() = default;
  /// Starts the thread. `name`: at most 15 characters. Throws OutOfMemoryError if the system
  /// refuses it.
  void start(const char* name, std::function<void()> body);
  /// Waits for `body` to return; the caller must make it do so.
  void join() noexcept;
  ~ServiceThread() { join(); }
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

  bool started() const { return thread_.joinable(); }
  /// Whether this process is a forked child of the one that started the thread. What the thread
  /// uses may then be locked for ever.
  bool left_behind() const;
  bool is_this_one() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  std::thread thread_;
  int process_ = 0;  ///< process that started the thread
};

}  // namespace lockstep
