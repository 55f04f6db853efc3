#pragma once

#include <algorithm>
#include <chrono>

namespace lockstep::cuda {

/// How long nothing has moved, as a thread sees it that looks now and then. A look counts for at
/// most `longest`, so that a process that was stopped meanwhile has not been silent.
class Silence {
 public:
  using Time = std::chrono::nanoseconds;

  Silence(Time limit, Time longest) : limit_(limit), longest_(longest) {}

  /// `passed`: time since the look before. Whether the silence has come to its limit.
  bool add(bool moved, Time passed) noexcept {
    silent_ = moved ? Time(0) : silent_ + std::min(passed, longest_);
    return silent_ >= limit_;
  }

 private:
  const Time limit_;
  const Time longest_;
  Time silent_{0};
};

}  // namespace lockstep::cuda
