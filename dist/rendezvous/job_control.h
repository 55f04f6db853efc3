#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lockstep::dist {

/// Why a job cannot go on.
struct Failure {
  int rank = 0;  ///< rank that noticed or caused it
  std::string text;
};

/// Control channel between the ranks of a job, separate from their data so that it still works if
/// the data transport does not: failures, and short messages such as questions about a stuck
/// operation. Thread-safe.
class JobControl {
 public:
  virtual ~JobControl() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Tells all ranks that this one cannot go on. The job keeps its first failure; later ones are
  /// dropped.
  virtual void fail(const std::string& text) noexcept = 0;
  /// The job's first failure, once it is known here. A rank that ends without `leave` is a failure.
  virtual std::optional<Failure> failure() const = 0;
  /// Announces that this rank ends normally, so that its end is not a failure.
  virtual void leave() noexcept = 0;

  /// Sends a short text to a rank's `on_message`; dropped if that rank has ended.
  virtual void post(int to, std::string message) noexcept = 0;

  struct Listener {
    std::function<void(int from, std::string message)> on_message;
    std::function<void(const Failure&)> on_failure;  ///< once
  };
  /// Sets the functions that a thread of the control calls from now on; they must return soon.
  /// Messages and a failure that came before are delivered at once. An empty listener ends this;
  /// when that call returns, no function is running.
  virtual void listen(Listener listener) = 0;
};

}  // namespace lockstep::dist
