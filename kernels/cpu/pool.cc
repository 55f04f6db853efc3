#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/check.h"
#include "core/library.h"
#include "core/parallel.h"
#include "kernels/cpu/elements.h"
#include "kernels/pool_windows.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 8192;              // elements read that are worth a thread
constexpr std::array<int64_t, 1> kOne = {1};  // the dilation of windows that have none

using Span = PoolSpan;

/// All windows along one dimension, found once.
struct Axis {
  int64_t size = 1;
  int64_t step = 1;  ///< between the places of one window
  std::vector<Span> windows{{0, 1, 1}};
};

/// The last three dimensions; where there are two, the first of the three has size 1.
using Axes = std::array<Axis, 3>;

Axes found(const PoolAxes& axes) {
  Axes result;
  for (size_t i = 0; i < 3; ++i) {
    result[i] = {axes[i].size, axes[i].step, {}};
    for (int64_t o = 0; o < axes[i].windows; ++o) result[i].windows.push_back(axes[i].window(o));
  }
  return result;
}

int64_t input_size(const Axes& axes) { return axes[0].size * axes[1].size * axes[2].size; }
int64_t output_size(const Axes& axes) {
  return static_cast<int64_t>(axes[0].windows.size() * axes[1].windows.size() *
                              axes[2].windows.size());
}

/// Calls body(plane) for each channel of each sample, in parallel; `elements` are all those of the
/// larger tensor.
template <class Body>
void for_each_plane(int64_t planes, int64_t elements, Body body) {
  if (planes == 0) return;
  parallel_for(0, planes, std::max<int64_t>(1, kGrain / std::max<int64_t>(elements / planes, 1)),
               [&](int64_t first, int64_t last) { body(first, last); });
}

/// Calls visit(o, window) for each window of a plane in order.
template <class Visit>
void for_each_window(const Axes& axes, Visit visit) {
  int64_t o = 0;
  for (const Span& a : axes[0].windows) {
    for (const Span& b : axes[1].windows) {
      for (const Span& c : axes[2].windows) visit(o++, std::array<Span, 3>{a, b, c});
    }
  }
}

/// Calls visit(place) for each place of a window inside the input.
template <class Visit>
void for_each_place(const Axes& axes, const std::array<Span, 3>& window, Visit visit) {
  for (int64_t a = window[0].first; a < window[0].last; a += axes[0].step) {
    for (int64_t b = window[1].first; b < window[1].last; b += axes[1].step) {
      const int64_t row = (a * axes[1].size + b) * axes[2].size;
      for (int64_t c = window[2].first; c < window[2].last; c += axes[2].step) visit(row + c);
    }
  }
}

int64_t divisor_of(const std::array<Span, 3>& window, std::optional<int64_t> divisor_override) {
  return divisor_override.value_or(window[0].counted * window[1].counted * window[2].counted);
}

void average(const Out& out, const In& self, const Axes& axes,
             std::optional<int64_t> divisor_override) {
  const int64_t in = input_size(axes), outs = output_size(axes);
  const int64_t planes = outs == 0 ? 0 : out.numel / outs;
  with_type(self.dtype, [&]<class T>() {
    // Integers wrap around as unsigned ones and are divided as signed ones.
    constexpr bool kInteger = std::is_integral_v<T>;
    using Sum = std::conditional_t<kInteger, uint64_t, double>;
    for_each_plane(planes, std::max(self.numel, out.numel), [&](int64_t first, int64_t last) {
      for (int64_t plane = first; plane < last; ++plane) {
        const T* from = self.data<T>() + plane * in;
        T* to = out.data<T>() + plane * outs;
        for_each_window(axes, [&](int64_t o, const std::array<Span, 3>& window) {
          Sum sum = 0;
          for_each_place(axes, window, [&](int64_t i) { sum += convert<Sum>(from[i]); });
          const int64_t divisor = divisor_of(window, divisor_override);
          if constexpr (kInteger) {
            to[o] = static_cast<T>(divisor == 0 ? 0 : static_cast<int64_t>(sum) / divisor);
          } else {
            to[o] = divisor == 0 ? T(0) : convert<T>(sum / static_cast<double>(divisor));
          }
        });
      }
    });
  });
}

/// Sums of one plane of an input's gradient, in the type to compute in.
template <class T>
class PlaneSums {
 public:
  using C = ComputeType<T>;
  explicit PlaneSums(int64_t size)
      : size_(size), buffer_(std::is_same_v<T, C> ? 0 : static_cast<size_t>(size)) {}
  C* start(T* plane) {
    C* sums = row_target(plane, buffer_.data());
    std::fill_n(sums, size_, C(0));
    return sums;
  }
  void finish(T* plane) const { finish_row(plane, buffer_.data(), size_); }

 private:
  int64_t size_;
  std::vector<C> buffer_;
};

void average_backward(const Out& out, const In& grad, const Axes& axes,
                      std::optional<int64_t> divisor_override) {
  const int64_t in = input_size(axes), outs = output_size(axes);
  const int64_t planes = in == 0 ? 0 : out.numel / in;
  with_floating_type(out.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    for_each_plane(planes, std::max(grad.numel, out.numel), [&](int64_t first, int64_t last) {
      PlaneSums<T> plane_sums(in);
      for (int64_t plane = first; plane < last; ++plane) {
        const T* from = grad.data<T>() + plane * outs;
        T* to = out.data<T>() + plane * in;
        C* sums = plane_sums.start(to);
        for_each_window(axes, [&](int64_t o, const std::array<Span, 3>& window) {
          const C part = convert<C>(from[o]) / static_cast<C>(divisor_of(window, divisor_override));
          for_each_place(axes, window, [&](int64_t i) { sums[i] += part; });
        });
        plane_sums.finish(to);
      }
    });
  });
}

template <int kSpatial>
void avg_pool(const Out& out, const In& self, IntList kernel_size, IntList stride, IntList padding,
              bool, bool count_include_pad, std::optional<int64_t> divisor_override) {
  average(out, self,
          found(strided_pool_axes(self, out, kSpatial, kernel_size, stride, padding, kOne,
                                  count_include_pad)),
          divisor_override);
}

template <int kSpatial>
void avg_pool_backward(const Out& out, const In& grad_output, const In& self, IntList kernel_size,
                       IntList stride, IntList padding, bool, bool count_include_pad,
                       std::optional<int64_t> divisor_override) {
  average_backward(out, grad_output,
                   found(strided_pool_axes(self, grad_output, kSpatial, kernel_size, stride,
                                           padding, kOne, count_include_pad)),
                   divisor_override);
}

template <int kSpatial>
void adaptive_avg_pool(const Out& out, const In& self, IntList) {
  average(out, self, found(even_pool_axes(self, out, kSpatial)), std::nullopt);
}

template <int kSpatial>
void adaptive_avg_pool_backward(const Out& out, const In& grad_output, const In& self) {
  average_backward(out, grad_output, found(even_pool_axes(self, grad_output, kSpatial)),
                   std::nullopt);
}

template <int kSpatial>
void max_pool(const Out& out, const Out& indices, const In& self, IntList kernel_size,
              IntList stride, IntList padding, IntList dilation, bool) {
  const Axes axes =
      found(strided_pool_axes(self, out, kSpatial, kernel_size, stride, padding, dilation, false));
  const int64_t in = input_size(axes), outs = output_size(axes);
  with_type(self.dtype, [&]<class T>() {
    using C = std::conditional_t<std::is_integral_v<T>, T, ComputeType<T>>;
    for_each_plane(out.numel / outs, std::max(self.numel, out.numel),
                   [&](int64_t first, int64_t last) {
                     for (int64_t plane = first; plane < last; ++plane) {
                       const T* from = self.data<T>() + plane * in;
                       T* to = out.data<T>() + plane * outs;
                       int64_t* places = indices.data<int64_t>() + plane * outs;
                       for_each_window(axes, [&](int64_t o, const std::array<Span, 3>& window) {
                         int64_t best = -1;
                         C most{};
                         for_each_place(axes, window, [&](int64_t i) {
                           const C value = convert<C>(from[i]);
                           if (best < 0 || value > most || value != value) {
                             best = i;
                             most = value;
                           }
                         });
                         to[o] = from[best];
                         places[o] = best;
                       });
                     }
                   });
  });
}

template <int kSpatial>
void max_pool_backward(const Out& out, const In& grad_output, const In& self, IntList, IntList,
                       IntList, IntList, bool, const In& indices) {
  int64_t in = 1, outs = 1;
  for (int i = 1; i <= kSpatial; ++i) in *= self.size(-i), outs *= grad_output.size(-i);
  const int64_t planes = in == 0 ? 0 : out.numel / in;
  with_floating_type(out.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    for_each_plane(
        planes, std::max(grad_output.numel, out.numel), [&](int64_t first, int64_t last) {
          PlaneSums<T> plane_sums(in);
          for (int64_t plane = first; plane < last; ++plane) {
            T* to = out.data<T>() + plane * in;
            C* sums = plane_sums.start(to);
            for (int64_t o = plane * outs; o < (plane + 1) * outs; ++o) {
              const int64_t place = indices.data<int64_t>()[o];
              LS_CHECK(place >= 0 && place < in, IndexError,
                       "[max_pool{}d_backward] index out of range: expected 0 to {}, got {} at {}.",
                       kSpatial, in - 1, place, o);
              sums[place] += convert<C>(grad_output.data<T>()[o]);
            }
            plane_sums.finish(to);
          }
        });
  });
}

}  // namespace

LS_KERNEL(CPU, "avg_pool2d", avg_pool<2>, Strides::kContiguous);
LS_KERNEL(CPU, "avg_pool3d", avg_pool<3>, Strides::kContiguous);
LS_KERNEL(CPU, "avg_pool2d_backward", avg_pool_backward<2>, Strides::kContiguous);
LS_KERNEL(CPU, "avg_pool3d_backward", avg_pool_backward<3>, Strides::kContiguous);
LS_KERNEL(CPU, "_adaptive_avg_pool2d", adaptive_avg_pool<2>, Strides::kContiguous);
LS_KERNEL(CPU, "_adaptive_avg_pool3d", adaptive_avg_pool<3>, Strides::kContiguous);
LS_KERNEL(CPU, "_adaptive_avg_pool2d_backward", adaptive_avg_pool_backward<2>,
          Strides::kContiguous);
LS_KERNEL(CPU, "_adaptive_avg_pool3d_backward", adaptive_avg_pool_backward<3>,
          Strides::kContiguous);
LS_KERNEL(CPU, "max_pool2d_with_indices", max_pool<2>, Strides::kContiguous);
LS_KERNEL(CPU, "max_pool3d_with_indices", max_pool<3>, Strides::kContiguous);
LS_KERNEL(CPU, "max_pool2d_with_indices_backward", max_pool_backward<2>, Strides::kContiguous);
LS_KERNEL(CPU, "max_pool3d_with_indices_backward", max_pool_backward<3>, Strides::kContiguous);

}  // namespace lockstep::cpu
