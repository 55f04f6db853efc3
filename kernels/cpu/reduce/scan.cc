// Operators that carry a state along a dimension.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;

/// Calls visit(offset of the first element, number of elements, step between them) for every line
/// of the contiguous `tensor` [outer, n, inner] along `dim`; lines are distributed over threads.
template <class Visit>
void for_each_line(const TensorArg& tensor, int64_t dim, const Visit& visit) {
  if (tensor.numel == 0) return;
  int64_t inner = 1, n = 1;
  if (tensor.rank > 0) {
    const int d = static_cast<int>(wrap_dim("scan", dim, tensor.rank));
    n = tensor.size(d);
    for (int i = d + 1; i < tensor.rank; ++i) inner *= tensor.size(i);
  }
  parallel_for(0, tensor.numel / n, std::max<int64_t>(1, kGrain / n),
               [&](int64_t first, int64_t last) {
                 for (int64_t line = first; line < last; ++line) {
                   visit(line / inner * n * inner + line % inner, n, inner);
                 }
               });
}

struct Sum {
  static constexpr int kStart = 0;
  template <class C>
  static C combine(C a, C b) {
    return a + b;
  }
};
struct Product {
  static constexpr int kStart = 1;
  template <class C>
  static C combine(C a, C b) {
    return a * b;
  }
};

/// Accumulates each line in order: floats in f64, integers in uint64, which wraps around.
template <class Join>
void running(const Out& out, const In& self, int64_t dim) {
  with_type(out.dtype, [&]<class T>() {
    using C = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
    const T* x = self.data<T>();
    T* y = out.data<T>();
    for_each_line(self, dim, [=](int64_t base, int64_t n, int64_t step) {
      C total = Join::kStart;
      for (int64_t i = base; i < base + n * step; i += step) {
        total = Join::combine(total, convert<C>(x[i]));
        y[i] = convert<T>(total);
      }
    });
  });
}

void cumsum(const Out& out, const In& self, int64_t dim, std::optional<DType>) {
  running<Sum>(out, self, dim);
}
void cumprod(const Out& out, const In& self, int64_t dim, std::optional<DType>) {
  running<Product>(out, self, dim);
}

/// log(e^a + e^b).
double log_sum(double a, double b) {
  const double larger = std::max(a, b);
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (std::isinf(larger)) return larger;
  return larger + std::log1p(std::exp(-std::abs(a - b)));
}

void logcumsumexp(const Out& out, const In& self, int64_t dim) {
  with_floating_type(out.dtype, [&]<class T>() {
    const T* x = self.data<T>();
    T* y = out.data<T>();
    for_each_line(self, dim, [=](int64_t base, int64_t n, int64_t step) {
      double total = -std::numeric_limits<double>::infinity();
      for (int64_t i = base; i < base + n * step; i += step) {
        total = log_sum(total, convert<double>(x[i]));
        y[i] = convert<T>(total);
      }
    });
  });
}

void linear_recurrence(const Out& out, const In& decay, const In& input, int64_t dim) {
  with_floating_type(out.dtype, [&]<class T>() {
    const T* a = decay.data<T>();
    const T* b = input.data<T>();
    T* h = out.data<T>();
    for_each_line(input, dim, [=](int64_t base, int64_t n, int64_t step) {
      double state = 0;
      for (int64_t i = base; i < base + n * step; i += step) {
        // There is no previous state for the first element, whatever its decay.
        state = (i == base ? 0.0 : convert<double>(a[i]) * state) + convert<double>(b[i]);
        h[i] = convert<T>(state);
      }
    });
  });
}

/// The extreme so far and its index along each line: of equal elements, or of NaNs, the last.
template <class Beats>
void running_extreme(const Out& values, const Out& indices, const In& self, int64_t dim) {
  with_type(self.dtype, [&]<class T>() {
    using C = std::conditional_t<std::is_integral_v<T>, T, ComputeType<T>>;
    const T* x = self.data<T>();
    T* y = values.data<T>();
    int64_t* at = indices.data<int64_t>();
    for_each_line(self, dim, [=](int64_t base, int64_t n, int64_t step) {
      int64_t place = 0;
      for (int64_t k = 0; k < n; ++k) {
        const int64_t i = base + k * step;
        const C value = convert<C>(x[i]);
        const C extreme = convert<C>(x[base + place * step]);
        const bool is_nan = value != value;
        if (is_nan || (extreme == extreme && !Beats::beats(extreme, value))) place = k;
        y[i] = x[base + place * step];
        at[i] = place;
      }
    });
  });
}
struct Larger {
  template <class C>
  static bool beats(C a, C b) {
    return a > b;
  }
};
struct Smaller {
  template <class C>
  static bool beats(C a, C b) {
    return a < b;
  }
};

}  // namespace

LS_KERNEL(CPU, "cumsum", cumsum, Strides::kContiguous);
LS_KERNEL(CPU, "cumprod", cumprod, Strides::kContiguous);
LS_KERNEL(CPU, "logcumsumexp", logcumsumexp, Strides::kContiguous);
LS_KERNEL(CPU, "cummax", running_extreme<Larger>, Strides::kContiguous);
LS_KERNEL(CPU, "cummin", running_extreme<Smaller>, Strides::kContiguous);
LS_KERNEL(CPU, "_linear_recurrence", linear_recurrence, Strides::kContiguous);

}  // namespace lockstep::cpu
