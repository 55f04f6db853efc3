#include <cmath>

#include "kernels/cuda/norm/norm_vector.cuh"

namespace lockstep::cuda {

namespace {

// dx = rstd (gw - mean(gw) - xhat mean(gw xhat)) with gw = grad weight; RMS norm omits the first
// mean.

/// Replaces g by gw and x by xhat.
template <int kPack, bool kAligned, class T, class C>
__device__ void weigh(const NormRows& p, int64_t at, const NormStatistics<C>& s, C* g, C* x) {
  C weight[kPack];
  load_parameter<kPack, kAligned, T>(p.weight, at, C(1), weight);
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    g[k] *= weight[k];
    x[k] = (x[k] - s.mean) * s.rstd;
  }
}

template <class T, class Group, int kPack, int kEach>
__device__ void norm_backward_held(const NormRows& p) {
  using C = ComputeType<T>;
  const int n = static_cast<int>(p.n);
  for (int64_t row = Group::first(); row < p.rows; row += Group::step()) {
    const NormStatistics<C> s = statistics_at<T>(p, row);
    HeldRow<T, Group, kPack, kEach> g, x;
    g.load(static_cast<const T*>(p.grad) + row * n, n, C(0));
    x.load(static_cast<const T*>(p.x) + row * n, n, C(0));
    C along_one = 0, along_x = 0;
#pragma unroll
    for (int i = 0; i < kEach; i += kPack) {
      if (x.index(i) >= n) continue;
      weigh<kPack, true, T>(p, x.index(i), s, g.at + i, x.at + i);
#pragma unroll
      for (int k = i; k < i + kPack; ++k) {
        along_one += g.at[k];
        along_x = std::fma(g.at[k], x.at[k], along_x);
      }
    }
    const C a = p.centre ? Group::template combine<SumOf<C>>(along_one) / static_cast<C>(n) : C(0);
    const C b = Group::template combine<SumOf<C>>(along_x) / static_cast<C>(n);
#pragma unroll
    for (int i = 0; i < kEach; ++i) g.at[i] = s.rstd * ((g.at[i] - a) - x.at[i] * b);
    g.store(dtype_of<T>, p.dx, row, n);
  }
}

template <class T>
__device__ void norm_backward_stream(const NormRows& p) {
  using C = ComputeType<T>;
  for (int64_t row = BlockRows::first(); row < p.rows; row += BlockRows::step()) {
    const NormStatistics<C> s = statistics_at<T>(p, row);
    const T* const grad = static_cast<const T*>(p.grad) + row * p.n;
    const T* const x = static_cast<const T*>(p.x) + row * p.n;
    T* const dx = static_cast<T*>(p.dx) + row * p.n;
    const bool packed = alike(grad, x) && alike(grad, dx);
    const auto each = [&](const auto& visit) {
      const auto weighed = [&](int64_t i, auto width) {
        C g[width.kPack], xhat[width.kPack];
        load_pack<width.kPack>(grad + i, g);
        load_pack<width.kPack>(x + i, xhat);
        weigh<width.kPack, false, T>(p, i, s, g, xhat);
        visit(i, width, g, xhat);
      };
      if (packed) {
        each_pack<T, BlockRows>(grad, p.n, weighed);
      } else {
        for (int64_t i = threadIdx.x; i < p.n; i += BlockRows::kThreads) weighed(i, Width<1>());
      }
    };
    C along_one = 0, along_x = 0;
    each([&](int64_t, auto width, const C* g, const C* xhat) {
      C ones = 0, xs = 0;
      for (int k = 0; k < width.kPack; ++k) {
        ones += g[k];
        xs = std::fma(g[k], xhat[k], xs);
      }
      along_one += ones;
      along_x += xs;
    });
    const C a = p.centre ? BlockRows::combine<SumOf<C>>(along_one) / static_cast<C>(p.n) : C(0);
    const C b = BlockRows::combine<SumOf<C>>(along_x) / static_cast<C>(p.n);
    each([&](int64_t i, auto width, C* g, const C* xhat) {
      for (int k = 0; k < width.kPack; ++k) g[k] = s.rstd * ((g[k] - a) - xhat[k] * b);
      store_pack<width.kPack>(dx + i, g);
    });
  }
}

}  // namespace

LS_ROW_KERNELS(norm_backward, NormRows, norm_backward_held, norm_backward_stream)

}  // namespace lockstep::cuda
