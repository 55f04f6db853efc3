// var, std, logsumexp and vector norms: in f64, as their states are more than one sum.

#include <cmath>
#include <limits>

#include "kernels/cuda/reduce/moments.h"
#include "kernels/cuda/reduce/reduction.cuh"

namespace lockstep::cuda {

namespace {

/// Mean and sum of squared deviations; merged as in Chan, Golub & LeVeque 1979.
struct MomentsFold {
  using C = double;
  struct State {
    double count;
    double mean;
    double squares;
  };

  __device__ explicit MomentsFold(const Reduction&) {}
  __device__ State none() const { return {0, 0, 0}; }
  template <int kCount>
  __device__ void add(State& state, const double* x, int64_t, int64_t) const {
    double sum = x[0];
    for (int k = 1; k < kCount; ++k) sum += x[k];
    State more{kCount, sum / kCount, 0};
    for (int k = 0; k < kCount; ++k) more.squares += (x[k] - more.mean) * (x[k] - more.mean);
    state = combine(state, more);
  }
  __device__ static State combine(const State& a, const State& b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const double total = a.count + b.count;
    const double distance = b.mean - a.mean;
    const double share = b.count / total;
    return {total, std::isfinite(distance) ? a.mean + distance * share : a.mean + b.mean,
            a.squares + b.squares + distance * distance * (a.count * share)};
  }
  /// `number` is the correction of the degrees of freedom.
  __device__ void store(const Reduction& p, int64_t i, const State& state) const {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const double degrees = state.count - p.number;
    const double variance = state.count == 0 ? kNan : state.squares / (degrees > 0 ? degrees : 0.0);
    store_result(p.result, i, p.variant == kStandardDeviation ? std::sqrt(variance) : variance);
    if (p.second.data != nullptr) store_result(p.second, i, state.count == 0 ? kNan : state.mean);
  }
};

/// sum(exp(x - shift)), where shift is the largest x if it is finite, else 0.
struct LogSumExpFold {
  using C = double;
  struct State {
    double largest;
    double sum;
  };

  __device__ explicit LogSumExpFold(const Reduction&) {}
  __device__ State none() const { return {LargestOf<double>::identity(), 0}; }
  __device__ static double shift_of(double largest) {
    return std::isfinite(largest) ? largest : 0.0;
  }
  /// The state's sum relative to another shift.
  __device__ static double shifted(const State& state, double shift) {
    return state.sum == 0 ? 0.0 : state.sum * std::exp(shift_of(state.largest) - shift);
  }
  template <int kCount>
  __device__ void add(State& state, const double* x, int64_t, int64_t) const {
    double largest = state.largest;
    for (int k = 0; k < kCount; ++k) largest = LargestOf<double>::combine(largest, x[k]);
    const double shift = shift_of(largest);
    double sum = shifted(state, shift);
    for (int k = 0; k < kCount; ++k) sum += std::exp(x[k] - shift);
    state = {largest, sum};
  }
  __device__ static State combine(const State& a, const State& b) {
    const double largest = LargestOf<double>::combine(a.largest, b.largest);
    const double shift = shift_of(largest);
    return {largest, shifted(a, shift) + shifted(b, shift)};
  }
  __device__ void store(const Reduction& p, int64_t i, const State& state) const {
    store_result(p.result, i, std::log(state.sum) + shift_of(state.largest));
  }
};

/// Sums powers of |x|: squares if kSquare, else as selected by `variant`.
template <bool kSquare>
struct PowerFold {
  using C = double;
  using State = double;
  int32_t variant;
  double power;

  __device__ explicit PowerFold(const Reduction& p) : variant(p.variant), power(p.number) {}
  __device__ State none() const { return 0; }
  __device__ double of(double x) const {
    if constexpr (kSquare) return x * x;
    const double size = std::fabs(x);
    if (variant == kCountNonzero) return size == 0 ? 0.0 : 1.0;
    return variant == kFirstPower ? size : std::pow(size, power);
  }
  template <int kCount>
  __device__ void add(State& state, const double* x, int64_t, int64_t) const {
    double sum = of(x[0]);
    for (int k = 1; k < kCount; ++k) sum += of(x[k]);
    state += sum;
  }
  __device__ static State combine(State a, State b) { return a + b; }
  __device__ void store(const Reduction& p, int64_t i, State state) const {
    double root = state;
    if constexpr (kSquare) {
      root = std::sqrt(state);
    } else if (variant == kAnyPower) {
      root = std::pow(state, 1 / power);
    }
    store_result(p.result, i, root);
  }
};

/// The largest (or smallest) |x|; NaN if there is one.
template <class Op>
struct ExtremeSizeFold {
  using C = double;
  using State = double;

  __device__ explicit ExtremeSizeFold(const Reduction&) {}
  __device__ State none() const {
    const double identity = Op::identity();
    return identity > 0 ? identity : 0.0;  // |x| is never below 0
  }
  template <int kCount>
  __device__ void add(State& state, const double* x, int64_t, int64_t) const {
    for (int k = 0; k < kCount; ++k) state = Op::combine(state, std::fabs(x[k]));
  }
  __device__ static State combine(State a, State b) { return Op::combine(a, b); }
  __device__ void store(const Reduction& p, int64_t i, State state) const {
    store_result(p.result, i, state);
  }
};

}  // namespace

LS_REDUCTION(moments_var, MomentsFold, AnyDType)
LS_REDUCTION(moments_logsumexp, LogSumExpFold, AnyDType)
LS_REDUCTION(moments_norm_f32, PowerFold<true>, float)
LS_REDUCTION(moments_norm_bf16, PowerFold<true>, BFloat16)
LS_REDUCTION(moments_norm_any, PowerFold<true>, AnyDType)
LS_REDUCTION(moments_power, PowerFold<false>, AnyDType)
LS_REDUCTION(moments_largest, ExtremeSizeFold<LargestOf<double>>, AnyDType)
LS_REDUCTION(moments_smallest, ExtremeSizeFold<SmallestOf<double>>, AnyDType)

}  // namespace lockstep::cuda
