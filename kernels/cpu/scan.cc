#include <algorithm>

#include "core/library.h"
#include "core/parallel.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;

/// `self` and `out` are contiguous [outer, n, inner] of one dtype. Each line is added in order:
/// floats in f64, integers in int64.
void cumsum(const Out& out, const In& self, int64_t dim, std::optional<DType>) {
  if (self.numel == 0) return;
  int64_t inner = 1, n = 1;
  if (self.rank > 0) {
    const int d = static_cast<int>(wrap_dim("cumsum", dim, self.rank));
    n = self.size(d);
    for (int i = d + 1; i < self.rank; ++i) inner *= self.size(i);
  }
  with_type(out.dtype, [&]<class T>() {
    constexpr bool kExact = std::is_integral_v<T>;
    using C = std::conditional_t<kExact, int64_t, double>;
    const T* x = self.data<T>();
    T* y = out.data<T>();
    parallel_for(0, self.numel / n, std::max<int64_t>(1, kGrain / n),
                 [&](int64_t first, int64_t last) {
                   for (int64_t line = first; line < last; ++line) {
                     const int64_t base = line / inner * n * inner + line % inner;
                     C total = 0;
                     for (int64_t i = 0; i < n; ++i) {
                       total += convert<C>(x[base + i * inner]);
                       y[base + i * inner] = convert<T>(total);
                     }
                   }
                 });
  });
}

}  // namespace

LS_KERNEL(CPU, "cumsum", cumsum, Strides::kContiguous);

}  // namespace lockstep::cpu
