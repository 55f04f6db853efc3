#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/p_distance.h"
#include "kernels/common/reduce_plan.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 8192;  // minimum elements per task

/// (sum |x - y|^p)^(1 / p) over n elements, in f64.
template <class T>
double distance(const T* x, const T* y, int64_t n, double p) {
  return p_distance(
      n, p, [=](int64_t i) { return std::fabs(convert<double>(x[i]) - convert<double>(y[i])); });
}

/// Axes of the batch dimensions of a contiguous x broadcast to `sizes`; strides count matrices.
Axes batch_axes(const In& x, IntList sizes) {
  const IntList own = x.sizes().first(static_cast<size_t>(x.rank - 2));
  const Dims strides = broadcast_strides(own, contiguous_strides(own), sizes);
  Axes axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({sizes[i], strides[i]});
  return axes;
}

void cdist_forward(const Out& out, const In& x1, const In& x2, double p, std::optional<int64_t>) {
  if (out.numel == 0) return;
  const int64_t rows = x1.size(-2), columns = x2.size(-2), n = x1.size(-1);
  const IntList batch = out.sizes().first(static_cast<size_t>(out.rank - 2));
  const Axes first_axes = batch_axes(x1, batch), second_axes = batch_axes(x2, batch);
  with_floating_type(out.dtype, [&]<class T>() {
    T* to = out.data<T>();
    parallel_for(
        0, out.numel, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t matrix = i / (rows * columns);
            const int64_t row = offset_at(matrix, first_axes) * rows + i / columns % rows;
            const int64_t column = offset_at(matrix, second_axes) * columns + i % columns;
            to[i] = convert<T>(distance(x1.data<T>() + row * n, x2.data<T>() + column * n, n, p));
          }
        });
  });
}

void pdist_forward(const Out& out, const In& self, double p) {
  const int64_t rows = self.size(0), n = self.size(1);
  with_floating_type(out.dtype, [&]<class T>() {
    const T* x = self.data<T>();
    const int64_t work = std::max<int64_t>(rows * n, 1);
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        // The rows before this one have rows - 1, rows - 2, ... pairs.
        T* to = out.data<T>() + row * (2 * rows - row - 1) / 2;
        for (int64_t other = row + 1; other < rows; ++other) {
          *to++ = convert<T>(distance(x + row * n, x + other * n, n, p));
        }
      }
    });
  });
}

}  // namespace

LS_KERNEL(CPU, "_cdist_forward", cdist_forward, Strides::kContiguous);
LS_KERNEL(CPU, "_pdist_forward", pdist_forward, Strides::kContiguous);

}  // namespace lockstep::cpu
