#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "core/tensor/memory_format.h"
#include "kernels/common/pool_windows.h"
#include "kernels/common/restrided.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/factory/copy.h"
#include "kernels/cpu/workspace.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 8192;              // minimum elements read per task
constexpr std::array<int64_t, 1> kOne = {1};  // dilation of pools without one

using Span = PoolSpan;

/// All windows along one dimension, computed once per call.
struct Axis {
  int64_t size = 1;
  int64_t dilation = 1;  ///< distance between the positions of one window
  std::vector<Span> windows{{0, 1, 1}};
};

/// The last three dimensions; for 2-d pooling the first of the three has size 1.
using Axes = std::array<Axis, 3>;

Axes found(const PoolAxes& axes) {
  Axes result;
  for (size_t i = 0; i < 3; ++i) {
    result[i] = {axes[i].size, axes[i].dilation, {}};
    for (int64_t o = 0; o < axes[i].windows; ++o) result[i].windows.push_back(axes[i].window(o));
  }
  return result;
}

int64_t input_size(const Axes& axes) { return axes[0].size * axes[1].size * axes[2].size; }
int64_t output_size(const Axes& axes) {
  return static_cast<int64_t>(axes[0].windows.size() * axes[1].windows.size() *
                              axes[2].windows.size());
}

/// Up to kLanes planes processed together. In channels-last images they are interleaved: element i
/// of lane k is at start + i * step + k. With kAlone it is a single row-major plane.
template <bool kAlone>
class Planes {
 public:
  static constexpr int64_t kLanes = kAlone ? 1 : 32;

  /// The `block`-th group of planes, in samples of `channels` planes each.
  Planes(int64_t block, int64_t channels) : channels_(channels) {
    const int64_t blocks = kAlone ? 1 : (channels + kLanes - 1) / kLanes;
    sample_ = block / blocks;
    first_ = block % blocks * kLanes;
    lanes_ = std::min(kLanes, channels - first_);
  }
  int64_t lanes() const { return kAlone ? 1 : lanes_; }
  int64_t step() const { return kAlone ? 1 : channels_; }
  /// Offset of the first element in a tensor whose planes have `size` elements.
  int64_t start(int64_t size) const { return sample_ * step() * size + first_; }

 private:
  int64_t sample_;
  int64_t first_;
  int64_t lanes_;
  int64_t channels_;
};

/// The images of a call: in channels-last layout a sample holds all channels, else one plane.
struct Images {
  int64_t samples;
  int64_t channels;

  Images(int64_t planes, const In& input, bool channels_last)
      : samples(channels_last ? input.size(0) : planes),
        channels(channels_last ? input.size(1) : 1) {}
};

/// Calls body(planes) for all of `images`, in parallel; `elements` is the size of the larger
/// tensor.
template <class Body>
void for_each_planes(const Images& images, int64_t elements, Body body) {
  const auto run = [&]<bool kAlone>() {
    constexpr int64_t kLanes = Planes<kAlone>::kLanes;
    const int64_t blocks = images.samples * ((images.channels + kLanes - 1) / kLanes);
    if (blocks == 0) return;
    parallel_for(0, blocks, std::max<int64_t>(1, kGrain / std::max<int64_t>(elements / blocks, 1)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t block = first; block < last; ++block) {
                     body(Planes<kAlone>(block, images.channels));
                   }
                 });
  };
  images.channels == 1 ? run.template operator()<true>() : run.template operator()<false>();
}

/// Calls visit(o, window) for each window of a plane in order; o is its output index.
template <class Visit>
void for_each_window(const Axes& axes, Visit visit) {
  int64_t o = 0;
  for (const Span& a : axes[0].windows) {
    for (const Span& b : axes[1].windows) {
      for (const Span& c : axes[2].windows) visit(o++, std::array<Span, 3>{a, b, c});
    }
  }
}

/// Calls visit(offset) for each position of a window that lies inside the input.
template <class Visit>
void for_each_place(const Axes& axes, const std::array<Span, 3>& window, Visit visit) {
  for (int64_t a = window[0].first; a < window[0].last; a += axes[0].dilation) {
    for (int64_t b = window[1].first; b < window[1].last; b += axes[1].dilation) {
      const int64_t row = (a * axes[1].size + b) * axes[2].size;
      for (int64_t c = window[2].first; c < window[2].last; c += axes[2].dilation) visit(row + c);
    }
  }
}

int64_t divisor_of(const std::array<Span, 3>& window, std::optional<int64_t> divisor_override) {
  return divisor_override.value_or(window[0].counted * window[1].counted * window[2].counted);
}

/// The tensors of a call: all channels-last if `input` is, else all row-major.
class Call {
 public:
  Call(const char* op, const In& input, bool keeps_format = true)
      : channels_last_(keeps_format && suggests_channels_last(input.sizes(), input.strides())),
        tensors_(op, kCPU, &copy_elements,
                 channels_last_ ? &channels_last_strides : &contiguous_strides) {}

  In read(const In& in) { return tensors_.read(in); }
  Out write(const Out& out) { return tensors_.write(out); }
  void finish() const { tensors_.finish(); }
  Images images(int64_t planes, const In& input) const { return {planes, input, channels_last_}; }

 private:
  bool channels_last_;
  Restrided tensors_;
};

void average(const Call& call, const Out& out, const In& self, const Axes& axes,
             std::optional<int64_t> divisor_override) {
  const int64_t in = input_size(axes), outs = output_size(axes);
  const Images images = call.images(outs == 0 ? 0 : out.numel / outs, self);
  with_type(self.dtype, [&]<class T>() {
    // Integers are summed unsigned, so that they wrap around, and divided as signed.
    constexpr bool kInteger = std::is_integral_v<T>;
    using Sum = std::conditional_t<kInteger, uint64_t, double>;
    for_each_planes(images, std::max(self.numel, out.numel), [&](const auto& planes) {
      const T* from = self.data<T>() + planes.start(in);
      T* to = out.data<T>() + planes.start(outs);
      for_each_window(axes, [&](int64_t o, const std::array<Span, 3>& window) {
        std::array<Sum, std::decay_t<decltype(planes)>::kLanes> sums{};
        for_each_place(axes, window, [&](int64_t i) {
          const T* place = from + i * planes.step();
          for (int64_t k = 0; k < planes.lanes(); ++k) sums[k] += convert<Sum>(place[k]);
        });
        const int64_t divisor = divisor_of(window, divisor_override);
        T* means = to + o * planes.step();
        for (int64_t k = 0; k < planes.lanes(); ++k) {
          if constexpr (kInteger) {
            means[k] = static_cast<T>(divisor == 0 ? 0 : static_cast<int64_t>(sums[k]) / divisor);
          } else {
            means[k] = divisor == 0 ? T(0) : convert<T>(sums[k] / static_cast<double>(divisor));
          }
        }
      });
    });
  });
}

/// Accumulates planes of an input's gradient in the compute type.
template <class T, class Planes>
class PlaneSums {
 public:
  using C = ComputeType<T>;
  /// Starts at zero, for planes of `size` elements of `gradient`.
  PlaneSums(const Planes& planes, T* gradient, int64_t size)
      : planes_(planes), size_(size), gradient_(gradient + planes.start(size)) {
    if constexpr (std::is_same_v<T, C>) {
      sums_ = gradient_;
      step_ = planes.step();
    } else {
      Workspace& workspace = thread_workspace(WorkspaceUse::kPlaneSums);
      step_ = planes.lanes();
      sums_ = static_cast<C*>(workspace.room(static_cast<size_t>(size * step_) * sizeof(C)));
    }
    for (int64_t i = 0; i < size; ++i) std::fill_n(at(i), planes.lanes(), C(0));
  }
  /// Returns the address of element i of the first lane.
  C* at(int64_t i) const { return sums_ + i * step_; }
  void finish() const {
    if constexpr (std::is_same_v<T, C>) return;
    for (int64_t i = 0; i < size_; ++i) {
      T* to = gradient_ + i * planes_.step();
      for (int64_t k = 0; k < planes_.lanes(); ++k) to[k] = T(at(i)[k]);
    }
  }

 private:
  const Planes& planes_;
  int64_t size_;
  T* gradient_;
  C* sums_;
  int64_t step_;
};

void average_backward(const Call& call, const Out& out, const In& grad, const Axes& axes,
                      std::optional<int64_t> divisor_override) {
  const int64_t in = input_size(axes), outs = output_size(axes);
  const Images images = call.images(in == 0 ? 0 : out.numel / in, out.as_in());
  with_floating_type(out.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    for_each_planes(images, std::max(grad.numel, out.numel), [&](const auto& planes) {
      const T* from = grad.data<T>() + planes.start(outs);
      const PlaneSums<T, std::decay_t<decltype(planes)>> sums(planes, out.data<T>(), in);
      for_each_window(axes, [&](int64_t o, const std::array<Span, 3>& window) {
        std::array<C, std::decay_t<decltype(planes)>::kLanes> parts;
        const C divisor = static_cast<C>(divisor_of(window, divisor_override));
        const T* gradients = from + o * planes.step();
        for (int64_t k = 0; k < planes.lanes(); ++k) parts[k] = convert<C>(gradients[k]) / divisor;
        for_each_place(axes, window, [&](int64_t i) {
          C* place = sums.at(i);
          for (int64_t k = 0; k < planes.lanes(); ++k) place[k] += parts[k];
        });
      });
      sums.finish();
    });
  });
}

constexpr const char* name_of(int spatial, const char* two, const char* three) {
  return spatial == 2 ? two : three;
}

template <int kSpatial>
void avg_pool(const Out& given_out, const In& given_self, IntList kernel_size, IntList stride,
              IntList padding, bool, bool count_include_pad,
              std::optional<int64_t> divisor_override) {
  Call call(name_of(kSpatial, "avg_pool2d", "avg_pool3d"), given_self, kSpatial == 2);
  const Out out = call.write(given_out);
  const In self = call.read(given_self);
  average(call, out, self,
          found(strided_pool_axes(self, out, kSpatial, kernel_size, stride, padding, kOne,
                                  count_include_pad)),
          divisor_override);
  call.finish();
}

template <int kSpatial>
void avg_pool_backward(const Out& given_out, const In& given_grad, const In& self,
                       IntList kernel_size, IntList stride, IntList padding, bool,
                       bool count_include_pad, std::optional<int64_t> divisor_override) {
  Call call(name_of(kSpatial, "avg_pool2d_backward", "avg_pool3d_backward"), self, kSpatial == 2);
  const Out out = call.write(given_out);
  const In grad = call.read(given_grad);
  average_backward(call, out, grad,
                   found(strided_pool_axes(self, grad, kSpatial, kernel_size, stride, padding, kOne,
                                           count_include_pad)),
                   divisor_override);
  call.finish();
}

template <int kSpatial>
void adaptive_avg_pool(const Out& given_out, const In& given_self, IntList) {
  Call call(name_of(kSpatial, "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"), given_self,
            kSpatial == 2);
  const Out out = call.write(given_out);
  const In self = call.read(given_self);
  average(call, out, self, found(even_pool_axes(self, out, kSpatial)), std::nullopt);
  call.finish();
}

template <int kSpatial>
void adaptive_avg_pool_backward(const Out& given_out, const In& given_grad, const In& self) {
  Call call(name_of(kSpatial, "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward"),
            self, kSpatial == 2);
  const Out out = call.write(given_out);
  const In grad = call.read(given_grad);
  average_backward(call, out, grad, found(even_pool_axes(self, grad, kSpatial)), std::nullopt);
  call.finish();
}

template <class C>
constexpr C kLeast = std::is_floating_point_v<C> ? -std::numeric_limits<C>::infinity()
                                                 : std::numeric_limits<C>::lowest();

/// True if `value` replaces `other` as the maximum; NaN exceeds every number.
template <class C>
bool beats(C value, C other) {
  if constexpr (std::is_floating_point_v<C>) return (value > other) | std::isnan(value);
  return value > other;
}

/// Finds the maximum of a window in each lane and its offset: the first of equal maxima, or the
/// last NaN.
template <class T, class Planes>
void find_largest(const Planes& planes, const Axes& axes, const std::array<Span, 3>& window,
                  const T* from, T* to, int64_t* places) {
  using C = std::conditional_t<std::is_integral_v<T>, T, ComputeType<T>>;
  std::array<int64_t, Planes::kLanes> best;
  std::array<C, Planes::kLanes> most;
  best.fill((window[0].first * axes[1].size + window[1].first) * axes[2].size + window[2].first);
  most.fill(kLeast<C>);
  for_each_place(axes, window, [&](int64_t i) {
    const T* place = from + i * planes.step();
    for (int64_t k = 0; k < planes.lanes(); ++k) {  // branch-free, so that it vectorises
      const C value = convert<C>(place[k]);
      const bool better = beats(value, most[k]);
      best[k] = better ? i : best[k];
      most[k] = better ? value : most[k];
    }
  });
  for (int64_t k = 0; k < planes.lanes(); ++k) {
    to[k] = from[best[k] * planes.step() + k];
    places[k] = best[k];
  }
}

/// Writes the maxima of all windows and their places.
void largest(Call& call, const Out& out, const Out& indices, const In& self, const Axes& axes) {
  const int64_t in = input_size(axes), outs = output_size(axes);
  with_type(self.dtype, [&]<class T>() {
    for_each_planes(call.images(outs == 0 ? 0 : out.numel / outs, self),
                    std::max(self.numel, out.numel), [&](const auto& planes) {
                      const T* from = self.data<T>() + planes.start(in);
                      for_each_window(axes, [&](int64_t o, const std::array<Span, 3>& window) {
                        const int64_t at = planes.start(outs) + o * planes.step();
                        find_largest(planes, axes, window, from, out.data<T>() + at,
                                     indices.data<int64_t>() + at);
                      });
                    });
  });
}

template <int kSpatial>
void max_pool(const Out& given_out, const Out& given_indices, const In& given_self,
              IntList kernel_size, IntList stride, IntList padding, IntList dilation, bool) {
  Call call(name_of(kSpatial, "max_pool2d_with_indices", "max_pool3d_with_indices"), given_self);
  const Out out = call.write(given_out), indices = call.write(given_indices);
  const In self = call.read(given_self);
  largest(
      call, out, indices, self,
      found(strided_pool_axes(self, out, kSpatial, kernel_size, stride, padding, dilation, false)));
  call.finish();
}

template <int kSpatial>
void adaptive_max_pool(const Out& given_out, const Out& given_indices, const In& given_self,
                       IntList) {
  Call call(name_of(kSpatial, "adaptive_max_pool2d", "adaptive_max_pool3d"), given_self);
  const Out out = call.write(given_out), indices = call.write(given_indices);
  const In self = call.read(given_self);
  largest(call, out, indices, self, found(even_pool_axes(self, out, kSpatial)));
  call.finish();
}

template <int kSpatial>
void max_pool_backward(const Out& given_out, const In& given_grad, const In& self, IntList, IntList,
                       IntList, IntList, bool, const In& given_indices) {
  Call call(
      name_of(kSpatial, "max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward"),
      self);
  const Out out = call.write(given_out);
  const In grad = call.read(given_grad), indices = call.read(given_indices);
  int64_t in = 1, outs = 1;
  for (int i = 1; i <= kSpatial; ++i) in *= self.size(-i), outs *= grad.size(-i);
  with_floating_type(out.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    for_each_planes(
        call.images(in == 0 ? 0 : out.numel / in, self), std::max(grad.numel, out.numel),
        [&](const auto& planes) {
          const PlaneSums<T, std::decay_t<decltype(planes)>> sums(planes, out.data<T>(), in);
          for (int64_t o = 0; o < outs; ++o) {
            const int64_t at = planes.start(outs) + o * planes.step();
            for (int64_t k = 0; k < planes.lanes(); ++k) {
              const int64_t place = indices.data<int64_t>()[at + k];
              LS_CHECK(place >= 0 && place < in, IndexError,
                       "[max_pool{}d_backward] index out of range: expected 0 to {}, got {} at {}.",
                       kSpatial, in - 1, place, at + k);
              sums.at(place)[k] += convert<C>(grad.data<T>()[at + k]);
            }
          }
          sums.finish();
        });
  });
  call.finish();
}

}  // namespace

LS_KERNEL(CPU, "avg_pool2d", avg_pool<2>, Strides::kAny);
LS_KERNEL(CPU, "avg_pool3d", avg_pool<3>, Strides::kAny);
LS_KERNEL(CPU, "avg_pool2d_backward", avg_pool_backward<2>, Strides::kAny);
LS_KERNEL(CPU, "avg_pool3d_backward", avg_pool_backward<3>, Strides::kAny);
LS_KERNEL(CPU, "_adaptive_avg_pool2d", adaptive_avg_pool<2>, Strides::kAny);
LS_KERNEL(CPU, "_adaptive_avg_pool3d", adaptive_avg_pool<3>, Strides::kAny);
LS_KERNEL(CPU, "_adaptive_avg_pool2d_backward", adaptive_avg_pool_backward<2>, Strides::kAny);
LS_KERNEL(CPU, "_adaptive_avg_pool3d_backward", adaptive_avg_pool_backward<3>, Strides::kAny);
LS_KERNEL(CPU, "max_pool2d_with_indices", max_pool<2>, Strides::kAny);
LS_KERNEL(CPU, "max_pool3d_with_indices", max_pool<3>, Strides::kAny);
LS_KERNEL(CPU, "adaptive_max_pool2d", adaptive_max_pool<2>, Strides::kAny);
LS_KERNEL(CPU, "adaptive_max_pool3d", adaptive_max_pool<3>, Strides::kAny);
LS_KERNEL(CPU, "max_pool2d_with_indices_backward", max_pool_backward<2>, Strides::kAny);
LS_KERNEL(CPU, "max_pool3d_with_indices_backward", max_pool_backward<3>, Strides::kAny);

}  // namespace lockstep::cpu
