#include <cmath>

#include "kernels/cuda/norm/stream_vector.cuh"

namespace lockstep::cuda {

namespace {

// dx = rstd (gw - mean(gw) - xhat mean(gw xhat)) + carried with gw = grad weight; RMS norm omits
// the first mean. A block has one group of rows, whose contributions to the parameters' gradients
// its threads sum as they go: each has the same columns in all rows.

/// to[r][k] = elements of `from`, in From, at at[r] + column[k / kPack] + k % kPack.
template <class From, int kPack, class T, int kRows, int kEach>
__device__ inline void load_rows(const void* from, const int64_t (&at)[kRows],
                                 const int (&column)[kEach / kPack], T (&to)[kRows][kEach]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int i = 0; i < kEach / kPack; ++i) {
      load_pack<kPack>(static_cast<const From*>(from) + at[r] + column[i], to[r] + i * kPack);
    }
  }
}

/// Sums each of the values over the block. `turn` alternates between calls, so that one barrier
/// is enough.
template <class T, int kValues>
__device__ inline void join_over_block(T (&values)[kValues], int turn) {
#pragma unroll
  for (T& value : values) value = warp_sum(value);
  if (warp_count() == 1) return;
  __shared__ T shared[2][kMostWarps][kValues];
  if (lane_index() == 0) {
#pragma unroll
    for (int k = 0; k < kValues; ++k) shared[turn][warp_index()][k] = values[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kValues; ++k) values[k] = shared[turn][0][k];
  for (int i = 1; i < warp_count(); ++i) {
#pragma unroll
    for (int k = 0; k < kValues; ++k) values[k] += shared[turn][i][k];
  }
}

/// kRows rows at a time, kPacks packs of kPack columns in each thread. Everything is loaded before
/// the first use, without a branch in between: rows past the group's end and columns past the
/// row's are loaded from elsewhere, and count as zero.
template <class T, int kPack, int kPacks, int kRows>
__device__ void backward_held(const StreamNormBackward& p) {
  constexpr int kEach = kPack * kPacks;
  const int n = static_cast<int>(p.n);
  const int64_t begin = int64_t{blockIdx.x} * p.group;
  const int64_t end = begin + p.group < p.rows ? begin + p.group : p.rows;
  int column[kPacks];
  bool has[kPacks];
  T weight[kEach], dw[kEach] = {}, db[kEach] = {};
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int first = (i * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kPack;
    has[i] = first < n;
    column[i] = has[i] ? first : 0;
    load_parameter<kPack, (kPack > 1), T>(p.weight, column[i], T(1), weight + i * kPack);
  }
  int turn = 0;
  for (int64_t row = begin; row < end; row += kRows) {
    int64_t at[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) at[r] = (row + r < end ? row + r : end - 1) * n;
    T x[kRows][kEach], carried[kRows][kEach] = {}, g[kRows][kEach];
    NormStatistics<T> s[kRows];
    load_rows<T, kPack>(p.x, at, column, x);
    if (p.carried != nullptr) load_rows<T, kPack>(p.carried, at, column, carried);
#pragma unroll
    for (int r = 0; r < kRows; ++r) s[r] = statistics_at<T>(p, row + r < end ? row + r : end - 1);
    // Last, since halves are converted within the branch and waited for there.
    if (std::is_same_v<T, float> && p.grad_dtype == DType::kBF16) {
      load_rows<BFloat16, kPack>(p.grad, at, column, g);
    } else if (std::is_same_v<T, float> && p.grad_dtype == DType::kF16) {
      load_rows<Half, kPack>(p.grad, at, column, g);
    } else {
      load_rows<T, kPack>(p.grad, at, column, g);
    }
    T along[2 * kRows];  // one, then xhat
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      T along_one = 0, along_x = 0;
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        const bool counts = has[k / kPack] && row + r < end;
        const T gradient = counts ? g[r][k] : T(0);
        const T xhat = counts ? (x[r][k] - s[r].mean) * s[r].rstd : T(0);
        dw[k] = std::fma(gradient, xhat, dw[k]);
        db[k] += gradient;
        g[r][k] = gradient * weight[k];
        x[r][k] = xhat;
        along_one += g[r][k];
        along_x = std::fma(g[r][k], xhat, along_x);
      }
      along[2 * r] = along_one;
      along[2 * r + 1] = along_x;
    }
    join_over_block(along, turn);
    turn ^= 1;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row + r >= end) break;
      const T a = p.centre ? along[2 * r] / static_cast<T>(n) : T(0);
      const T b = along[2 * r + 1] / static_cast<T>(n);
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        if (!has[i]) continue;
        T* const dx = g[r] + i * kPack;
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          const T own = s[r].rstd * ((dx[k] - a) - x[r][i * kPack + k] * b);
          dx[k] = p.carried != nullptr ? own + carried[r][i * kPack + k] : own;
        }
        const int64_t to = at[r] + column[i];
        if (p.dx != nullptr) store_pack<kPack>(static_cast<T*>(p.dx) + to, dx);
        if (p.narrow != nullptr) store_beside<kPack, T>(p.narrow_dtype, p.narrow, to, dx);
      }
    }
  }
  const auto write = [&](void* partial, const T* sums) {
    if (partial == nullptr) return;
    T* const group = static_cast<T*>(partial) + int64_t{blockIdx.x} * n;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (has[i]) store_pack<kPack>(group + column[i], sums + i * kPack);
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
      for (int64_t i = threadIdx.x; i < p.n; i += blockDim.x) {
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
    const T a = p.centre ? block_sum(along_one) / static_cast<T>(p.n) : T(0);
    const T b = block_sum(along_x) / static_cast<T>(p.n);
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

#define LS_BACKWARD(Suffix, ...)                                      \
  LS_CUDA_KERNEL(stream_norm_backward_##Suffix, StreamNormBackward,   \
                 static_cast<int>(StreamNormColumns::kMostThreads)) { \
    __VA_ARGS__(p);                                                   \
  }
LS_BACKWARD(f32_packs1, backward_held<float, 4, 1, 2>)
LS_BACKWARD(f32_packs2, backward_held<float, 4, 2, 2>)
LS_BACKWARD(f32_packs4, backward_held<float, 4, 4, 1>)
LS_BACKWARD(f32_columns1, backward_held<float, 1, 1, 4>)
LS_BACKWARD(f32_columns4, backward_held<float, 1, 4, 1>)
LS_BACKWARD(f32_stream, backward_stream<float>)
LS_BACKWARD(f64_columns1, backward_held<double, 1, 1, 4>)
LS_BACKWARD(f64_columns4, backward_held<double, 1, 4, 1>)
LS_BACKWARD(f64_stream, backward_stream<double>)

}  // namespace lockstep::cuda
