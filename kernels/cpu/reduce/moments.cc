// var, std, logsumexp and vector norms: reductions whose state is more than one sum.

#include <cmath>
#include <limits>

#include "core/dispatch/kernel.h"
#include "kernels/cpu/reduce/block_fold.h"

namespace lockstep::cpu {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using MaybeDims = std::optional<IntList>;

ReducePlan plan_for(const In& self, IntList dims) {
  return plan_reduction(self, dim_mask("reduce", dims, self.rank));
}

/// Writes result i, in row-major order of `out`, in out's dtype.
void write_number(const Out& out, int64_t i, double value) {
  int64_t at = i;
  if (!out.contiguous) {
    at = 0;
    for (int d = out.rank; d-- > 0; i /= out.size(d)) at += i % out.size(d) * out.stride(d);
  }
  with_floating_type(out.dtype, [&]<class T>() { out.data<T>()[at] = convert<T>(value); });
}

/// Mean and sum of squared deviations; merged as in Chan, Golub & LeVeque 1979.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;

  void add(const double* x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    count = static_cast<double>(n);
    mean = sum / count;
    for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  }
  void combine(const Moments& later) {
    if (count == 0) {
      *this = later;
      return;
    }
    const double total = count + later.count;
    const double distance = later.mean - mean;
    mean += distance * (later.count / total);
    squares += later.squares + distance * distance * (count * (later.count / total));
    count = total;
  }
  double variance(std::optional<Scalar> correction) const {
    if (count == 0) return std::numeric_limits<double>::quiet_NaN();
    return squares / std::max(0.0, count - correction.value_or(1).to_double());
  }
  double average() const { return count == 0 ? std::numeric_limits<double>::quiet_NaN() : mean; }
};

void var(const Out& out, const In& self, MaybeDims dims, std::optional<Scalar> correction, bool) {
  fold_each(plan_for(self, dims.value_or(IntList())), self, Moments(),
            [&](int64_t i, const Moments& moments) {
              write_number(out, i, moments.variance(correction));
            });
}
void standard_deviation(const Out& out, const In& self, MaybeDims dims,
                        std::optional<Scalar> correction, bool) {
  fold_each(plan_for(self, dims.value_or(IntList())), self, Moments(),
            [&](int64_t i, const Moments& moments) {
              write_number(out, i, std::sqrt(moments.variance(correction)));
            });
}
void var_mean(const Out& out, const Out& mean, const In& self, MaybeDims dims,
              std::optional<Scalar> correction, bool) {
  fold_each(plan_for(self, dims.value_or(IntList())), self, Moments(),
            [&](int64_t i, const Moments& moments) {
              write_number(out, i, moments.variance(correction));
              write_number(mean, i, moments.average());
            });
}

/// sum(exp(x - shift)), where shift is the largest x if it is finite, else 0.
struct LogSumExpFold {
  double largest = -kInfinity;
  double sum = 0;

  static double shift_of(double largest) { return std::isfinite(largest) ? largest : 0.0; }
  void add(const double* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    const double shift = shift_of(largest);
    for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - shift);
  }
  void combine(const LogSumExpFold& later) {
    if (later.largest == -kInfinity) return;
    if (largest == -kInfinity) {
      *this = later;
      return;
    }
    const double both =
        later.largest > largest || std::isnan(later.largest) ? later.largest : largest;
    const double shift = shift_of(both);
    sum = sum * std::exp(shift_of(largest) - shift) +
          later.sum * std::exp(shift_of(later.largest) - shift);
    largest = both;
  }
  double value() const { return std::log(sum) + shift_of(largest); }
};

void logsumexp(const Out& out, const In& self, IntList dims, bool) {
  fold_each(plan_for(self, dims), self, LogSumExpFold(),
            [&](int64_t i, const LogSumExpFold& fold) { write_number(out, i, fold.value()); });
}

/// Sum of `Power::of(|x|)`.
template <class Power>
struct PowerSum {
  Power power;
  double sum = 0;
  void add(const double* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) sum += power.of(std::fabs(x[i]));
  }
  void combine(const PowerSum& later) { sum += later.sum; }
};
struct CountPower {
  static double of(double size) { return size == 0 ? 0.0 : 1.0; }
};
struct FirstPower {
  static double of(double size) { return size; }
};
struct SecondPower {
  static double of(double size) { return size * size; }
};
struct AnyPower {
  double p;
  double of(double size) const { return std::pow(size, p); }
};

/// The largest (or smallest) |x|; NaN if there is one.
template <bool kLargest>
struct ExtremeSize {
  double value = kLargest ? 0.0 : kInfinity;
  void take(double size) {
    const bool better = kLargest ? size > value : size < value;
    if (better || size != size) value = size;
  }
  void add(const double* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) take(std::fabs(x[i]));
  }
  void combine(const ExtremeSize& later) { take(later.value); }
};

void vector_norm(const Out& out, const In& self, Scalar ord, MaybeDims dims, bool,
                 std::optional<DType>) {
  const ReducePlan plan = plan_for(self, dims.value_or(IntList()));
  const double p = ord.to_double();
  const auto sum_powers = [&](const auto& power, auto root) {
    using Fold = PowerSum<std::remove_cvref_t<decltype(power)>>;
    fold_each(plan, self, Fold{power},
              [&](int64_t i, const Fold& fold) { write_number(out, i, root(fold.sum)); });
  };
  const auto find_extreme = [&]<bool kLargest>() {
    fold_each(plan, self, ExtremeSize<kLargest>(),
              [&](int64_t i, const auto& fold) { write_number(out, i, fold.value); });
  };
  if (p == 0) return sum_powers(CountPower(), [](double sum) { return sum; });
  if (p == 1) return sum_powers(FirstPower(), [](double sum) { return sum; });
  if (p == 2) return sum_powers(SecondPower(), [](double sum) { return std::sqrt(sum); });
  if (p == kInfinity) return find_extreme.template operator()<true>();
  if (p == -kInfinity) return find_extreme.template operator()<false>();
  sum_powers(AnyPower{p}, [p](double sum) { return std::pow(sum, 1 / p); });
}

}  // namespace

LS_KERNEL(CPU, "var.correction", var, Strides::kAny);
LS_KERNEL(CPU, "std.correction", standard_deviation, Strides::kAny);
LS_KERNEL(CPU, "var_mean.correction", var_mean, Strides::kAny);
LS_KERNEL(CPU, "logsumexp", logsumexp, Strides::kAny);
LS_KERNEL(CPU, "linalg_vector_norm", vector_norm, Strides::kAny);

}  // namespace lockstep::cpu
