#include <cmath>

#include "kernels/cuda/norm/norm_vector.cuh"

namespace lockstep::cuda {

namespace {

template <class T, class Group>
__device__ void write_statistics(const NormRows& p, int64_t row,
                                 const NormStatistics<ComputeType<T>>& s) {
  if (Group::thread() != 0) return;
  store_statistic<T>(p.mean, row, s.mean);
  store_statistic<T>(p.rstd, row, s.rstd);
}
template <class T, class Group, int kPack, int kEach>
__device__ void norm_held(const NormRows& p) {
  using C = ComputeType<T>;
  const int n = static_cast<int>(p.n);
  for (int64_t row = Group::first(); row < p.rows; row += Group::step()) {
    HeldRow<T, Group, kPack, kEach> x;
    x.load(static_cast<const T*>(p.x) + row * n, n, C(0));
    NormStatistics<C> s{C(0), C(1)};
    if (p.centre && n > 0) s.mean = x.template combine<SumOf<C>>() / static_cast<C>(n);
    C squares = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const C distance = x.index(i) < n ? x.at[i] - s.mean : C(0);
      squares = std::fma(distance, distance, squares);
    }
    s.rstd = rstd_of(p, Group::template combine<SumOf<C>>(squares));
    write_statistics<T, Group>(p, row, s);
#pragma unroll
    for (int i = 0; i < kEach; i += kPack) {
      if (x.index(i) < n) scale_and_shift<kPack, true, T>(p, x.index(i), s, x.at + i);
    }
    x.store(dtype_of<T>, p.y, row, n);
  }
}

template <class T>
__device__ void norm_stream(const NormRows& p) {
  using C = ComputeType<T>;
  for (int64_t row = BlockRows::first(); row < p.rows; row += BlockRows::step()) {
    const T* const x = static_cast<const T*>(p.x) + row * p.n;
    T* const y = static_cast<T*>(p.y) + row * p.n;
    NormStatistics<C> s{C(0), C(1)};
    /// Sum over the row of term(element).
    const auto sum = [&](const auto& term) {
      C total = 0;
      each_pack<T, BlockRows>(x, p.n, [&](int64_t i, auto width) {
        C values[width.kPack];
        load_pack<width.kPack>(x + i, values);
        C more = 0;
        for (int k = 0; k < width.kPack; ++k) more += term(values[k]);
        total += more;
      });
      return BlockRows::combine<SumOf<C>>(total);
    };
    if (p.centre) s.mean = sum([](C value) { return value; }) / static_cast<C>(p.n);
    s.rstd = rstd_of(p, sum([&](C value) { return (value - s.mean) * (value - s.mean); }));
    write_statistics<T, BlockRows>(p, row, s);
    const bool together = alike(x, y);
    each_pack<T, BlockRows>(x, p.n, [&](int64_t i, auto width) {
      C values[width.kPack];
      load_pack<width.kPack>(x + i, values);
      scale_and_shift<width.kPack, false, T>(p, i, s, values);
      if (together) {
        store_pack<width.kPack>(y + i, values);
      } else {
        for (int k = 0; k < width.kPack; ++k) y[i + k] = convert<T>(values[k]);
      }
    });
  }
}

}  // namespace

LS_ROW_KERNELS(norm, NormRows, norm_held, norm_stream)

}  // namespace lockstep::cuda
