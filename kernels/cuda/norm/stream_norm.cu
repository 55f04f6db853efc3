#include <cmath>

#include "kernels/cuda/norm/stream_vector.cuh"

namespace lockstep::cuda {

namespace {

template <class T, class Group>
__device__ void write_statistics(const StreamNormRows& p, int64_t row, const NormStatistics<T>& s) {
  if (Group::thread() != 0) return;
  store_statistic<T>(p.mean, row, s.mean);
  store_statistic<T>(p.rstd, row, s.rstd);
}

template <class T, class Group, int kPack, int kEach>
__device__ void stream_norm_held(const StreamNormRows& p) {
  const int n = static_cast<int>(p.n);
  for (int64_t row = Group::first(); row < p.rows; row += Group::step()) {
    HeldRow<T, Group, kPack, kEach> x;
    x.load(static_cast<const T*>(p.x) + row * n, n, T(0));
    if (p.branch != nullptr) {
#pragma unroll
      for (int i = 0; i < kEach; i += kPack) {
        if (x.index(i) >= n) continue;
        T more[kPack];
        load_beside<kPack, T>(p.branch_dtype, p.branch, row * n + x.index(i), more);
#pragma unroll
        for (int k = 0; k < kPack; ++k) x.at[i + k] += more[k];
      }
      x.store(dtype_of<T>, p.sum, row, n);
    }
    NormStatistics<T> s{T(0), T(1)};
    if (p.centre && n > 0) s.mean = x.template combine<SumOf<T>>() / static_cast<T>(n);
    T squares = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const T distance = x.index(i) < n ? x.at[i] - s.mean : T(0);
      squares = std::fma(distance, distance, squares);
    }
    s.rstd = rstd_of(p, Group::template combine<SumOf<T>>(squares));
    write_statistics<T, Group>(p, row, s);
#pragma unroll
    for (int i = 0; i < kEach; i += kPack) {
      if (x.index(i) >= n) continue;
      scale_and_shift<kPack, true, T>(p, x.index(i), s, x.at + i);
      store_beside<kPack, T>(p.y_dtype, p.y, row * n + x.index(i), x.at + i);
    }
  }
}

/// Rows that are too long to be held: each element is read again for every pass.
template <class T>
__device__ void stream_norm_stream(const StreamNormRows& p) {
  for (int64_t row = BlockRows::first(); row < p.rows; row += BlockRows::step()) {
    const int64_t begin = row * p.n;
    const T* x = static_cast<const T*>(p.x) + begin;
    if (p.branch != nullptr) {
      T* const sum = static_cast<T*>(p.sum) + begin;
      for (int64_t i = threadIdx.x; i < p.n; i += BlockRows::kThreads) {
        T more;
        load_beside<1, T>(p.branch_dtype, p.branch, begin + i, &more);
        sum[i] = x[i] + more;
      }
      __syncthreads();
      x = sum;
    }
    NormStatistics<T> s{T(0), T(1)};
    /// Sum over the row of term(element).
    const auto sum = [&](const auto& term) {
      T total = 0;
      each_pack<T, BlockRows>(x, p.n, [&](int64_t i, auto width) {
        T values[width.kPack];
        load_pack<width.kPack>(x + i, values);
        T more = 0;
        for (int k = 0; k < width.kPack; ++k) more += term(values[k]);
        total += more;
      });
      return BlockRows::combine<SumOf<T>>(total);
    };
    if (p.centre) s.mean = sum([](T value) { return value; }) / static_cast<T>(p.n);
    s.rstd = rstd_of(p, sum([&](T value) { return (value - s.mean) * (value - s.mean); }));
    write_statistics<T, BlockRows>(p, row, s);
    for (int64_t i = threadIdx.x; i < p.n; i += BlockRows::kThreads) {
      T value = x[i];
      scale_and_shift<1, false, T>(p, i, s, &value);
      store_beside<1, T>(p.y_dtype, p.y, begin + i, &value);
    }
  }
}

}  // namespace

LS_PACKED_ROW_KERNELS(stream_norm, StreamNormRows, float, f32, 4, stream_norm_held,
                      stream_norm_stream)
LS_SCALAR_ROW_KERNELS(stream_norm, StreamNormRows, double, f64, stream_norm_held,
                      stream_norm_stream)

}  // namespace lockstep::cuda
