#include "kernels/cuda/norm/norm_rows.cuh"

namespace lockstep::cuda {

namespace {

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
