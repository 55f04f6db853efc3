#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

namespace lockstep::dist {

/// The end of a rank's transport, which waits for the other ranks to come to theirs: MPI_Finalize
/// has no limit of its own and cannot be interrupted. Thread-safe; each call once.
class CommonEnd {
 public:
  void set_limit(std::chrono::milliseconds limit) noexcept { limit_ = limit; }

  /// The thread that ends the transport says when it begins, and when it is done.
  void begin() { begun_.set_value(); }
  void finish() { done_.set_value(); }

  /// Waits for `begin`, and from then on for `finish`, as long as the limit; then joins `thread`.
  /// If it does not come, detaches it and calls `tell`, if any, with a line for the log.
  void join(std::thread& thread, const std::function<void(const std::string&)>& tell);

 private:
  std::atomic<std::chrono::milliseconds> limit_{std::chrono::minutes(10)};
  std::promise<void> begun_;
  std::promise<void> done_;
};

}  // namespace lockstep::dist
