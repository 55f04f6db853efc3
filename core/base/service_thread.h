#pragma once

#include <functional>
#include <thread>

namespace lockstep {

/// A thread that serves an object, and is joined with it. It takes no signals of the program. In a
/// child made by fork() there is none to join.
class ServiceThread {
 public:
  ServiceThread() = default;
  /// `name`: at most 15 characters. Throws BackendError where the system refuses.
  void start(const char* name, std::function<void()> body);
  /// What makes `body` return is the caller's affair.
  void join() noexcept;
  ~ServiceThread() { join(); }
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

  bool started() const { return thread_.joinable(); }
  /// Whether this process is a child by fork() of the one it was started in: what the thread uses
  /// may be locked for ever.
  bool left_behind() const;
  bool is_this_one() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  std::thread thread_;
  int process_ = 0;  ///< it was started in
};

}  // namespace lockstep
