#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace lockstep {

/// Times short calls: the median over rounds of many calls each.
class Timer {
 public:
  explicit Timer(int rounds) : rounds_(rounds) {}

  /// Median nanoseconds of one call of `body`.
  template <class F>
  double operator()(F&& body, int calls = 200000) const {
    using Clock = std::chrono::steady_clock;
    for (int i = 0; i < calls / 10; ++i) body();
    std::vector<double> rounds;
    for (int round = 0; round < rounds_; ++round) {
      const auto start = Clock::now();
      for (int i = 0; i < calls; ++i) body();
      const std::chrono::duration<double, std::nano> spent = Clock::now() - start;
      rounds.push_back(spent.count() / calls);
    }
    std::nth_element(rounds.begin(), rounds.begin() + rounds_ / 2, rounds.end());
    return rounds[static_cast<size_t>(rounds_ / 2)];
  }

 private:
  int rounds_;
};

}  // namespace lockstep
