#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep::cpu {

/// Number of independent accumulators of a sum; a binary tree combines them.
inline constexpr int64_t kWideLanes = 16;

/// A sum in f64, in an order that depends only on the lengths of the runs.
class WideSum {
 public:
  template <class Term>
  void add(int64_t n, Term term) {
    int64_t i = 0;
    for (; i + kWideLanes <= n; i += kWideLanes) {
      for (int64_t k = 0; k < kWideLanes; ++k) lanes_[k] += static_cast<double>(term(i + k));
    }
    for (int64_t k = 0; i + k < n; ++k) lanes_[k] += static_cast<double>(term(i + k));
  }
  double total() const {
    double lanes[kWideLanes];
    std::copy_n(lanes_, kWideLanes, lanes);
    for (int64_t half = kWideLanes / 2; half > 0; half /= 2) {
      for (int64_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
    }
    return lanes[0];
  }

 private:
  alignas(64) double lanes_[kWideLanes] = {};
};

/// Calls visit(0), ..., visit(n - 1), in runs of fixed length, which the compiler vectorises.
template <class Visit>
inline void for_each_number(int64_t n, Visit visit) {
  constexpr int64_t kRun = 16;
  int64_t i = 0;
  for (; i + kRun <= n; i += kRun) {
    for (int64_t k = 0; k < kRun; ++k) visit(i + k);
  }
  for (; i < n; ++i) visit(i);
}

/// kSums sums side by side, each in the order of a WideSum. The caller passes each term's lane,
/// which is its position in its run modulo kWideLanes.
template <int64_t kSums>
class WideSums {
 public:
  /// Adds one term to each of the first `n` sums.
  template <class Term>
  void add(int64_t lane, int64_t n, Term term) {
    double* sums = lanes_[lane];
    for_each_number(n, [&](int64_t k) { sums[k] += static_cast<double>(term(k)); });
  }
  double total(int64_t sum) const {
    WideSum lanes;
    lanes.add(kWideLanes, [&](int64_t lane) { return lanes_[lane][sum]; });
    return lanes.total();
  }

 private:
  alignas(64) double lanes_[kWideLanes][kSums] = {};
};

}  // namespace lockstep::cpu
