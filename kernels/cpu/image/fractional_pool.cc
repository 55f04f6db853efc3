#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;

/// Where the windows of one dimension begin, for a random number in [0, 1). As ATen computes it, in
/// the compute type of the elements: the rounding decides where a window begins.
template <class C>
std::vector<int64_t> window_starts(C sample, int64_t size, int64_t count, int64_t kernel) {
  std::vector<int64_t> starts(static_cast<size_t>(count));
  const int64_t last = size - kernel;
  if (count > 1) {
    const C step = static_cast<C>(last) / static_cast<C>(count - 1);
    const auto shift = static_cast<int64_t>(sample * step);
    for (int64_t i = 0; i + 1 < count; ++i) {
      const auto start = static_cast<int64_t>((static_cast<C>(i) + sample) * step) - shift;
      // Samples outside of [0, 1) must not lead out of the image.
      starts[static_cast<size_t>(i)] = std::clamp<int64_t>(start, 0, last);
    }
  }
  if (count > 0) starts.back() = last;
  return starts;
}

/// A random number that a window's start is computed from; 0 for one that is not in [0, 1].
template <class C>
C checked_sample(C sample) {
  return sample >= 0 && sample <= 1 ? sample : C(0);
}

void fractional_max_pool2d(const Out& out, const Out& indices, const In& self, IntList kernel_size,
                           IntList, const In& samples) {
  const int64_t height = self.size(-2), width = self.size(-1);
  const int64_t rows = out.size(-2), columns = out.size(-1);
  const int64_t kernel_height = kernel_size[0];
  const int64_t kernel_width = kernel_size[kernel_size.size() == 1 ? 0 : 1];
  const int64_t results = rows * columns;
  if (out.numel == 0) return;
  with_floating_type(self.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    const int64_t cost = results * kernel_height * kernel_width;
    parallel_for(0, out.numel / results, std::max<int64_t>(1, kGrain / std::max<int64_t>(cost, 1)),
                 [&](int64_t first, int64_t end) {
                   for (int64_t plane = first; plane < end; ++plane) {
                     const T* x = self.data<T>() + plane * height * width;
                     const T* sample = samples.data<T>() + plane * 2;
                     const auto left = window_starts(checked_sample(convert<C>(sample[0])), width,
                                                     columns, kernel_width);
                     const auto top = window_starts(checked_sample(convert<C>(sample[1])), height,
                                                    rows, kernel_height);
                     int64_t o = plane * results;
                     for (const int64_t row : top) {
                       for (const int64_t column : left) {
                         int64_t best = row * width + column;
                         C most = -std::numeric_limits<C>::infinity();
                         for (int64_t i = row; i < row + kernel_height; ++i) {
                           for (int64_t j = column; j < column + kernel_width; ++j) {
                             const C value = convert<C>(x[i * width + j]);
                             if (value > most || std::isnan(value)) {
                               most = value;
                               best = i * width + j;
                             }
                           }
                         }
                         out.data<T>()[o] = x[best];
                         indices.data<int64_t>()[o++] = best;
                       }
                     }
                   }
                 });
  });
}

}  // namespace

LS_KERNEL(CPU, "fractional_max_pool2d", fractional_max_pool2d, Strides::kContiguous);

}  // namespace lockstep::cpu
