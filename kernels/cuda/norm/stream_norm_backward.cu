#include <cmath>

#include "kernels/cuda/norm/stream_vector.cuh"

namespace lockstep::cuda {

namespace {

// dx = rstd (gw - mean(gw) - xhat mean(gw xhat)) + carried with gw = grad weight; RMS norm omits
// the first mean. A block has one group of rows, whose contributions to the parameters' gradients
// it sums as it goes: each thread has the same columns in all of its rows.

template <class T, class Group, int kPack, int kEach>
__device__ void backward_held(const StreamNormBackward& p) {
  constexpr bool kWarps = Group::kThreads == kWarpThreads;
  const int n = static_cast<int>(p.n);
  const int64_t begin = int64_t{blockIdx.x} * p.group;
  const int64_t end = begin + p.group < p.rows ? begin + p.group : p.rows;
  T dw[kEach] = {}, db[kEach] = {};
  for (int64_t row = begin + (kWarps ? warp_index() : 0); row < end;
       row += kWarps ? kNormRowThreads : 1) {
    const NormStatistics<T> s = statistics_at<T>(p, row);
    const int64_t at = row * n;
    HeldRow<T, Group, kPack, kEach> g, x;
#pragma unroll
    for (int i = 0; i < kEach; i += kPack) {
      if (x.index(i) >= n) continue;
      load_beside<kPack, T>(p.grad_dtype, p.grad, at + x.index(i), g.at + i);
      load_pack<kPack>(static_cast<const T*>(p.x) + at + x.index(i), x.at + i);
    }
    T along_one = 0, along_x = 0;
#pragma unroll
    for (int i = 0; i < kEach; i += kPack) {
      if (x.index(i) >= n) continue;
      T weight[kPack];
      load_parameter<kPack, true, T>(p.weight, x.index(i), T(1), weight);
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        T& gradient = g.at[i + k];
        T& xhat = x.at[i + k];
        xhat = (xhat - s.mean) * s.rstd;
        dw[i + k] = std::fma(gradient, xhat, dw[i + k]);
        db[i + k] += gradient;
        gradient *= weight[k];
        along_one += gradient;
        along_x = std::fma(gradient, xhat, along_x);
      }
    }
    const T a = p.centre ? Group::template combine<SumOf<T>>(along_one) / static_cast<T>(n) : T(0);
    const T b = Group::template combine<SumOf<T>>(along_x) / static_cast<T>(n);
#pragma unroll
    for (int i = 0; i < kEach; i += kPack) {
      if (x.index(i) >= n) continue;
      T more[kPack] = {};
      if (p.carried != nullptr) {
        load_pack<kPack>(static_cast<const T*>(p.carried) + at + x.index(i), more);
      }
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        const T own = s.rstd * ((g.at[i + k] - a) - x.at[i + k] * b);
        g.at[i + k] = p.carried != nullptr ? own + more[k] : own;
      }
      if (p.dx != nullptr) store_pack<kPack>(static_cast<T*>(p.dx) + at + x.index(i), g.at + i);
      if (p.narrow != nullptr) {
        store_beside<kPack, T>(p.narrow_dtype, p.narrow, at + x.index(i), g.at + i);
      }
    }
  }
  const int64_t to = int64_t{blockIdx.x} * p.n;
  const auto write = [&](void* partial, const T* parts) {
    if (partial == nullptr) return;
    T* const group = static_cast<T*>(partial) + to;
#pragma unroll
    for (int i = 0; i < kEach; i += kPack) {
      const int first = i * Group::kThreads;  // of the columns of pack i
      if constexpr (kWarps) {
        if (first < n) write_columns<kPack>(group, first, p.n, parts + i);
      } else {
        const int column = first + Group::thread() * kPack;
        if (column < n) store_pack<kPack>(group + column, parts + i);
      }
    }
  };
  write(p.partial_weight, dw);
  write(p.partial_bias, db);
}

/// Rows that are too long to be held; the group's partial sums are in memory.
template <class T>
__device__ void backward_stream(const StreamNormBackward& p) {
  const int64_t begin = int64_t{blockIdx.x} * p.group;
  const int64_t end = begin + p.group < p.rows ? begin + p.group : p.rows;
  T* const dw =
      p.partial_weight != nullptr ? static_cast<T*>(p.partial_weight) + blockIdx.x * p.n : nullptr;
  T* const db =
      p.partial_bias != nullptr ? static_cast<T*>(p.partial_bias) + blockIdx.x * p.n : nullptr;
  for (int64_t row = begin; row < end; ++row) {
    const NormStatistics<T> s = statistics_at<T>(p, row);
    const int64_t at = row * p.n;
    /// Visits this thread's elements: visit(i, gradient, gradient * weight, xhat).
    const auto each = [&](const auto& visit) {
      for (int64_t i = threadIdx.x; i < p.n; i += BlockRows::kThreads) {
        T gradient, weight;
        load_beside<1, T>(p.grad_dtype, p.grad, at + i, &gradient);
        load_parameter<1, false, T>(p.weight, i, T(1), &weight);
        const T x = static_cast<const T*>(p.x)[at + i];
        visit(i, gradient, gradient * weight, (x - s.mean) * s.rstd);
      }
    };
    T along_one = 0, along_x = 0;
    each([&](int64_t, T, T weighed, T xhat) {
      along_one += weighed;
      along_x = std::fma(weighed, xhat, along_x);
    });
    const T a = p.centre ? BlockRows::combine<SumOf<T>>(along_one) / static_cast<T>(p.n) : T(0);
    const T b = BlockRows::combine<SumOf<T>>(along_x) / static_cast<T>(p.n);
    each([&](int64_t i, T gradient, T weighed, T xhat) {
      T own = s.rstd * ((weighed - a) - xhat * b);
      if (p.carried != nullptr) own += static_cast<const T*>(p.carried)[at + i];
      if (p.dx != nullptr) static_cast<T*>(p.dx)[at + i] = own;
      if (p.narrow != nullptr) store_beside<1, T>(p.narrow_dtype, p.narrow, at + i, &own);
      if (dw != nullptr) dw[i] = std::fma(gradient, xhat, row == begin ? T(0) : dw[i]);
      if (db != nullptr) db[i] = gradient + (row == begin ? T(0) : db[i]);
    });
  }
}

}  // namespace

#define LS_BACKWARD(Suffix, ...) \
  LS_ROW_KERNEL(stream_norm_backward_##Suffix, StreamNormBackward, __VA_ARGS__)
LS_BACKWARD(f32_warp8, backward_held<float, WarpRows, 4, 8>)
LS_BACKWARD(f32_warp32, backward_held<float, WarpRows, 4, 32>)
LS_BACKWARD(f32_block8, backward_held<float, BlockRows, 4, 8>)
LS_BACKWARD(f32_block32, backward_held<float, BlockRows, 4, 32>)
LS_BACKWARD(f32_warp_scalar, backward_held<float, WarpRows, 1, 32>)
LS_BACKWARD(f32_block_scalar, backward_held<float, BlockRows, 1, 32>)
LS_BACKWARD(f32_stream, backward_stream<float>)
LS_BACKWARD(f64_warp_scalar, backward_held<double, WarpRows, 1, 32>)
LS_BACKWARD(f64_block_scalar, backward_held<double, BlockRows, 1, 32>)
LS_BACKWARD(f64_stream, backward_stream<double>)

}  // namespace lockstep::cuda
