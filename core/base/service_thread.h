#pragma once

#include <functional>
#include <thread>

namespace lockstep {

/// A background thread that belongs to an object and is joined in its destructor. Blocks all
/// signals of the process. In a child made by fork() there is nothing to join.
class ServiceThread {
 public:
  ServiceThread() = default;
  /// Starts the thread. `name`: at most 15 characters. Throws BackendError if the system cannot
  /// start it.
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
