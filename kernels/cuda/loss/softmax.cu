#include "kernels/cuda/loss/softmax_columns.cuh"
#include "kernels/cuda/loss/softmax_rows.cuh"

namespace lockstep::cuda {

namespace {

template <class T>
__device__ void softmax_stream(const SoftmaxLines& p) {
  using C = ComputeType<T>;
  for (int64_t row = BlockRows::first(); row < p.outer; row += BlockRows::step()) {
    const T* const x = static_cast<const T*>(p.a) + row * p.n;
    T* const y = static_cast<T*>(p.y) + row * p.n;
    MaxSum<C> part = MaxSum<C>::none();
    each_pack<T, BlockRows>(x, p.n, [&](int64_t i, auto width) {
      C values[width.kPack];
      load_pack<width.kPack>(x + i, values);
      part.template add<width.kPack, T>(values);
    });
    const MaxSum<C> whole = BlockRows::combine<JoinMaxSum<C>>(part);
    const Normalise<T> normalise(whole.largest, whole.sum, p.log);
    const bool together = alike(x, y);
    each_pack<T, BlockRows>(x, p.n, [&](int64_t i, auto width) {
      C values[width.kPack];
      load_pack<width.kPack>(x + i, values);
      for (int k = 0; k < width.kPack; ++k) values[k] = normalise(values[k]);
      if (together) {
        store_pack<width.kPack>(y + i, values);
      } else {
        for (int k = 0; k < width.kPack; ++k) y[i + k] = convert<T>(values[k]);
      }
    });
  }
}

template <class T>
__device__ void softmax_columns(const SoftmaxLines& p) {
  using C = ComputeType<T>;
  constexpr int kRun = 4;  // elements loaded before they are added
  const SoftmaxColumns columns(p);
  for (int64_t tile = blockIdx.x; tile < p.outer * columns.tiles; tile += gridDim.x) {
    const bool mine = columns.column(tile) < p.inner;
    const int64_t end = mine ? p.n : 0;
    const T* const x = static_cast<const T*>(p.a) + columns.base(p, tile);
    T* const y = static_cast<T*>(p.y) + columns.base(p, tile);
    MaxSum<C> part = MaxSum<C>::none();
    for (int64_t i = SoftmaxColumns::part(); i < end; i += kRun * kSoftmaxColumnThreads) {
      C values[kRun];
#pragma unroll
      for (int k = 0; k < kRun; ++k) {
        const int64_t at = i + k * kSoftmaxColumnThreads;
        values[k] = at < end ? convert<C>(x[at * p.inner]) : LargestOf<C>::identity();
      }
      part.template add<kRun, T>(values);
    }
    const MaxSum<C> whole = join_column<JoinMaxSum<C>>(part);
    const Normalise<T> normalise(whole.largest, whole.sum, p.log);
    for (int64_t i = SoftmaxColumns::part(); i < end; i += kSoftmaxColumnThreads) {
      y[i * p.inner] = convert<T>(normalise(convert<C>(x[i * p.inner])));
    }
  }
}

}  // namespace

LS_FLOAT_ROW_KERNELS(softmax, SoftmaxLines, softmax_held, softmax_stream)
LS_ROW_KERNEL(softmax_f32_columns, SoftmaxLines, softmax_columns<float>)
LS_ROW_KERNEL(softmax_bf16_columns, SoftmaxLines, softmax_columns<BFloat16>)
LS_ROW_KERNEL(softmax_f16_columns, SoftmaxLines, softmax_columns<Half>)
LS_HELD_SCALAR_ROW_KERNELS(softmax, SoftmaxLines, double, f64, softmax_held)
// Unless nvcc is told how many resident blocks are enough, it spills registers to have more.
LS_RESIDENT_ROW_KERNEL(softmax_f64_stream, SoftmaxLines, 4, softmax_stream<double>)
LS_RESIDENT_ROW_KERNEL(softmax_f64_columns, SoftmaxLines, 3, softmax_columns<double>)

}  // namespace lockstep::cuda
