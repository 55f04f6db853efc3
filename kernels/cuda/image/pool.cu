#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fault.cuh"
#include "kernels/cuda/image/pool.h"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

namespace {

/// A plane of the tensor that is read.
struct Plane {
  int64_t sample;
  int64_t lane;  ///< index of the plane within the sample

  __device__ int64_t number(const Pool& p) const { return sample * p.channels + lane; }
  __device__ int64_t offset(const Pool& p, int64_t place) const {
    return (sample * p.from_plane + place) * p.channels + lane;
  }
};

/// Element `i` of the tensor that is written: its plane and coordinates.
struct Element {
  Plane plane;
  int64_t at[3];

  __device__ Element(const Pool& p, int64_t i) {
    int64_t place, rest;
    plane = {p.sample.split(i, place), 0};
    if (p.channels > 1) place = p.lane.split(place, plane.lane);
    at[0] = p.slice.split(place, rest);
    at[1] = p.line.split(rest, at[2]);
  }
};

struct Window {
  PoolSpan along[3];

  __device__ Window(const PoolAxis (&axes)[3], const int64_t (&o)[3])
      : along{axes[0].window(o[0]), axes[1].window(o[1]), axes[2].window(o[2])} {}
  __device__ int64_t divisor(const Pool& p) const {
    return p.has_divisor ? p.divisor : along[0].counted * along[1].counted * along[2].counted;
  }
};

/// Calls visit(place) for each position of a window inside the input, in order.
template <class Visit>
__device__ void for_each_place(const Pool& p, const Window& window, Visit visit) {
  for (int64_t a = window.along[0].first; a < window.along[0].last; a += p.axes[0].dilation) {
    for (int64_t b = window.along[1].first; b < window.along[1].last; b += p.axes[1].dilation) {
      const int64_t row = (a * p.axes[1].size + b) * p.axes[2].size;
      for (int64_t c = window.along[2].first; c < window.along[2].last; c += p.axes[2].dilation) {
        visit(row + c);
      }
    }
  }
}

/// Calls visit(window index, window) for the windows that contain a position, in order.
template <class Visit>
__device__ void for_each_window(const Pool& p, const int64_t (&place)[3], Visit visit) {
  int64_t first[3], last[3];
  for (int d = 0; d < 3; ++d) p.axes[d].windows_near(place[d], first[d], last[d]);
  int64_t o[3];
  for (o[0] = first[0]; o[0] < last[0]; ++o[0]) {
    for (o[1] = first[1]; o[1] < last[1]; ++o[1]) {
      for (o[2] = first[2]; o[2] < last[2]; ++o[2]) {
        const Window window(p.axes, o);
        bool has = true;
        for (int d = 0; d < 3; ++d) has = has && p.axes[d].has(window.along[d], place[d]);
        if (has) visit((o[0] * p.axes[1].windows + o[1]) * p.axes[2].windows + o[2], window);
      }
    }
  }
}

template <class T>
struct Floats {
  using Sum = double;
  static __device__ double load(const Pool& p, int64_t i) {
    return convert<double>(static_cast<const T*>(p.from)[i]);
  }
  static __device__ void store(const Pool& p, int64_t i, double value) {
    static_cast<T*>(p.to)[i] = convert<T>(value);
  }
  static __device__ double quotient(double sum, int64_t divisor) {
    return divisor == 0 ? 0.0 : sum / static_cast<double>(divisor);
  }
};
/// Integers of any dtype: summed unsigned, so that they wrap around, and divided as signed.
struct Integers {
  using Sum = int64_t;
  static __device__ int64_t load(const Pool& p, int64_t i) {
    return load_as<int64_t>(p.dtype, static_cast<const char*>(p.from) + i * element_size(p.dtype));
  }
  static __device__ void store(const Pool& p, int64_t i, int64_t value) {
    store_as<int64_t>(p.dtype, static_cast<char*>(p.to) + i * element_size(p.dtype), value);
  }
  static __device__ int64_t quotient(int64_t sum, int64_t divisor) {
    return divisor == 0 ? 0 : sum / divisor;
  }
};

template <class E>
__device__ void pool_average(const Pool& p) {
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    const Element element(p, i);
    const Window window(p.axes, element.at);
    typename E::Sum sum = 0;
    for_each_place(p, window, [&](int64_t place) {
      const typename E::Sum value = E::load(p, element.plane.offset(p, place));
      if constexpr (std::is_integral_v<typename E::Sum>) {
        sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(value));
      } else {
        sum += value;
      }
    });
    E::store(p, i, E::quotient(sum, window.divisor(p)));
  }
}

/// One thread per element of the input's gradient sums over the windows that contain it.
template <class T>
__device__ void pool_average_backward(const Pool& p) {
  using C = ComputeType<T>;
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    const Element element(p, i);
    const T* from = static_cast<const T*>(p.from);
    C sum = 0;
    for_each_window(p, element.at, [&](int64_t o, const Window& window) {
      sum += convert<C>(from[element.plane.offset(p, o)]) / static_cast<C>(window.divisor(p));
    });
    static_cast<T*>(p.to)[i] = convert<T>(sum);
  }
}

/// The first of equal maxima, or the last NaN.
template <class E>
__device__ void pool_max(const Pool& p) {
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    const Element element(p, i);
    int64_t best = -1;
    typename E::Sum most{};
    for_each_place(p, Window(p.axes, element.at), [&](int64_t place) {
      const typename E::Sum value = E::load(p, element.plane.offset(p, place));
      if (best < 0 || value > most || value != value) {
        best = place;
        most = value;
      }
    });
    E::store(p, i, most);
    p.indices[i] = best;
  }
}

/// One thread per element of the input's gradient sums over the windows whose maximum it is. If
/// some index of a plane lies outside its window, all windows of the plane are searched.
template <class T>
__device__ void pool_max_backward(const Pool& p) {
  using C = ComputeType<T>;
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    const Element element(p, i);
    const int64_t own =
        (element.at[0] * p.axes[1].size + element.at[1]) * p.axes[2].size + element.at[2];
    C sum = 0;
    const auto add = [&](int64_t o) {
      const int64_t at = element.plane.offset(p, o);
      if (p.indices[at] == own) sum += convert<C>(static_cast<const T*>(p.from)[at]);
    };
    if (p.has_stray_index[element.plane.number(p)] != 0) {
      for (int64_t o = 0; o < p.from_plane; ++o) add(o);
    } else {
      for_each_window(p, element.at, [&](int64_t o, const Window&) { add(o); });
    }
    static_cast<T*>(p.to)[i] = convert<T>(sum);
  }
}

/// One block per plane checks whether every index lies in its window.
__device__ void find_strays(const Pool& p) {
  const Plane plane{blockIdx.x / p.channels, blockIdx.x % p.channels};
  const int64_t line = p.axes[2].size, slice = p.axes[1].size * line;
  const int64_t places = p.axes[0].size * slice;
  int stray = 0;
  for (int64_t o = threadIdx.x; o < p.from_plane; o += blockDim.x) {
    const int64_t index = p.indices[plane.offset(p, o)];
    if (index < 0 || index >= places) {
      note_fault(p.fault, index, 0, places);
      stray = 1;
      continue;
    }
    const int64_t columns = p.axes[2].windows, rows = p.axes[1].windows;
    const int64_t window[3] = {o / columns / rows, o / columns % rows, o % columns};
    const int64_t place[3] = {index / slice, index % slice / line, index % line};
    for (int d = 0; d < 3; ++d) {
      if (!p.axes[d].has(p.axes[d].window(window[d]), place[d])) stray = 1;
    }
  }
  stray = __syncthreads_or(stray);
  if (threadIdx.x == 0) p.has_stray_index[blockIdx.x] = stray;
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::BFloat16;
using lockstep::Half;
using lockstep::cuda::Pool;

LS_CUDA_KERNEL(pool_strays, Pool, 256) { lockstep::cuda::find_strays(p); }

#define LS_POOL(E, suffix)                              \
  LS_CUDA_KERNEL(pool_average_##suffix, Pool, 256) {    \
    lockstep::cuda::pool_average<lockstep::cuda::E>(p); \
  }                                                     \
  LS_CUDA_KERNEL(pool_max_##suffix, Pool, 256) { lockstep::cuda::pool_max<lockstep::cuda::E>(p); }
#define LS_POOL_BACKWARD(T, suffix)                           \
  LS_POOL(Floats<T>, suffix)                                  \
  LS_CUDA_KERNEL(pool_average_backward_##suffix, Pool, 256) { \
    lockstep::cuda::pool_average_backward<T>(p);              \
  }                                                           \
  LS_CUDA_KERNEL(pool_max_backward_##suffix, Pool, 256) { lockstep::cuda::pool_max_backward<T>(p); }
LS_POOL_BACKWARD(float, f32)
LS_POOL_BACKWARD(double, f64)
LS_POOL_BACKWARD(Half, f16)
LS_POOL_BACKWARD(BFloat16, bf16)
LS_POOL(Integers, integers)
