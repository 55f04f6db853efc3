#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace lockstep {

/// Polls until `condition` is true. Returns false after `limit`.
inline bool comes_true(const std::function<bool()>& condition,
                       std::chrono::seconds limit = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace lockstep
