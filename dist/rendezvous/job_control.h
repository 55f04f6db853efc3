#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lockstep::dist {

/// Why a job cannot go on.
struct Failure {
  int rank = 0;  ///< that noticed or caused it
  std::string text;
};

/// What the ranks of a job tell each other beside their data, by a way that still works when that
/// of the data does not: that one of them failed, and what one waits for. Thread-safe.
class JobControl {
 public:
  virtual ~JobControl() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Tells all ranks that this one cannot go on. The job's first failure stays; later ones are
  /// dropped.
  virtual void fail(const std::string& text) noexcept = 0;
  /// The job's first failure, once it is known here. A rank that ended without `leave` is one.
  virtual std::optional<Failure> failure() const = 0;
  /// This rank ends as it should; its end is no failure.
  virtual void leave() noexcept = 0;

  /// Sends a short text to a rank's `on_message`; dropped when it is gone.
  virtual void post(int to, std::string message) noexcept = 0;

  struct Listener {
    std::function<void(int from, std::string message)> on_message;
    std::function<void(const Failure&)> on_failure;  ///< once
  };
  /// Calls these from a thread of the control's own from now on; they must return soon. What came
  /// before is told at once. An empty listener ends it: after that returns, none is being called.
  virtual void listen(Listener listener) = 0;
};

}  // namespace lockstep::dist
