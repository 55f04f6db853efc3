#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/row_lanes.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;  // minimum elements per task

/// True if a is preferred to b: the first of equal elements wins, and NaN beats all but an earlier
/// NaN.
struct Larger {
  template <class T>
  static bool better(T a, T b) {
    return a > b || (a != a && b == b);
  }
  template <class T>
  using Join = LargestOf<T>;
};
struct Smaller {
  template <class T>
  static bool better(T a, T b) {
    return a < b || (a != a && b == b);
  }
  template <class T>
  using Join = SmallestOf<T>;
};

/// Index of the preferred element among x[0], x[stride], ...
template <class Order, class T>
int64_t find_taken(const T* x, int64_t n, int64_t stride) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (stride == 1 && n >= 64) {  // two passes, each at memory bandwidth
      const T value = join_row<typename Order::template Join<T>>(x, n);
      const auto wanted = [value](T each) {
        return each == value || (value != value && each != each);
      };
      return std::find_if(x, x + n, wanted) - x;
    }
  }
  using C = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;
  int64_t taken = 0;
  C best = static_cast<C>(x[0]);
  for (int64_t i = 1; i < n; ++i) {
    const C each = static_cast<C>(x[i * stride]);
    if (Order::better(each, best)) {
      best = each;
      taken = i;
    }
  }
  return taken;
}

/// `self` is contiguous [outer, n, inner]; `values` may be null.
template <class Order>
void take_along(const Out* values, const Out& indices, const In& self, std::optional<int64_t> dim) {
  int64_t outer = 1, n = self.numel, inner = 1;
  if (dim && self.rank > 0) {
    const int d = static_cast<int>(wrap_dim("argmax", *dim, self.rank));
    n = self.size(d);
    for (int i = 0; i < d; ++i) outer *= self.size(i);
    for (int i = d + 1; i < self.rank; ++i) inner *= self.size(i);
  }
  int64_t* to = indices.data<int64_t>();
  with_type(self.dtype, [&]<class T>() {
    const T* x = self.data<T>();
    T* picked = values != nullptr ? values->data<T>() : nullptr;
    parallel_for(0, outer * inner, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t i = first; i < last; ++i) {
                     const T* line = x + i / inner * n * inner + i % inner;
                     to[i] = find_taken<Order>(line, n, inner);
                     if (picked != nullptr) picked[i] = line[to[i] * inner];
                   }
                 });
  });
}

void argmax(const Out& out, const In& self, std::optional<int64_t> dim, bool) {
  take_along<Larger>(nullptr, out, self, dim);
}
void argmin(const Out& out, const In& self, std::optional<int64_t> dim, bool) {
  take_along<Smaller>(nullptr, out, self, dim);
}
void max_dim(const Out& values, const Out& indices, const In& self, int64_t dim, bool) {
  take_along<Larger>(&values, indices, self, dim);
}
void min_dim(const Out& values, const Out& indices, const In& self, int64_t dim, bool) {
  take_along<Smaller>(&values, indices, self, dim);
}

}  // namespace

LS_KERNEL(CPU, "argmax", argmax, Strides::kContiguous);
LS_KERNEL(CPU, "argmin", argmin, Strides::kContiguous);
LS_KERNEL(CPU, "max.dim", max_dim, Strides::kContiguous);
LS_KERNEL(CPU, "min.dim", min_dim, Strides::kContiguous);

}  // namespace lockstep::cpu
