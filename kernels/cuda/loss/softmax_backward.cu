#include "kernels/cuda/loss/softmax_columns.cuh"
#include "kernels/cuda/loss/softmax_rows.cuh"

namespace lockstep::cuda {

namespace {

template <class T>
__device__ void softmax_backward_stream(const SoftmaxLines& p) {
  using C = ComputeType<T>;
  for (int64_t row = BlockRows::first(); row < p.outer; row += BlockRows::step()) {
    const T* const g = static_cast<const T*>(p.a) + row * p.n;
    const T* const y = static_cast<const T*>(p.b) + row * p.n;
    const bool packed = alike(g, y) && alike(g, static_cast<T*>(p.y) + row * p.n);
    const auto each = [&](const auto& visit) {
      if (packed && p.out_dtype == dtype_of<T>) {
        each_pack<T, BlockRows>(g, p.n, visit);
      } else {
        for (int64_t i = threadIdx.x; i < p.n; i += BlockRows::kThreads) visit(i, Width<1>());
      }
    };
    C total = 0;
    each([&](int64_t i, auto width) {
      C gs[width.kPack], ys[width.kPack];
      load_pack<width.kPack>(g + i, gs);
      load_pack<width.kPack>(y + i, ys);
      C more = 0;
      for (int k = 0; k < width.kPack; ++k) more += softmax_gradient_term(p.log, gs[k], ys[k]);
      total += more;
    });
    total = BlockRows::combine<SumOf<C>>(total);
    each([&](int64_t i, auto width) {
      C gs[width.kPack], ys[width.kPack];
      load_pack<width.kPack>(g + i, gs);
      load_pack<width.kPack>(y + i, ys);
      for (int k = 0; k < width.kPack; ++k) gs[k] = softmax_gradient(p.log, gs[k], ys[k], total);
      store_pack<width.kPack, T>(p.out_dtype, p.y, row * p.n + i, gs);
    });
  }
}

template <class T>
__device__ void softmax_backward_columns(const SoftmaxLines& p) {
  using C = ComputeType<T>;
  const SoftmaxColumns columns(p);
  for (int64_t tile = blockIdx.x; tile < p.outer * columns.tiles; tile += gridDim.x) {
    const bool mine = columns.column(tile) < p.inner;
    const int64_t end = mine ? p.n : 0;
    const int64_t base = columns.base(p, tile);
    const T* const g = static_cast<const T*>(p.a) + base;
    const T* const y = static_cast<const T*>(p.b) + base;
    C total = 0;
    for (int64_t i = SoftmaxColumns::part(); i < end; i += kSoftmaxColumnThreads) {
      const int64_t at = i * p.inner;
      total += softmax_gradient_term(p.log, convert<C>(g[at]), convert<C>(y[at]));
    }
    total = join_column<SumOf<C>>(total);
    for (int64_t i = SoftmaxColumns::part(); i < end; i += kSoftmaxColumnThreads) {
      const int64_t at = i * p.inner;
      const C dx = softmax_gradient(p.log, convert<C>(g[at]), convert<C>(y[at]), total);
      store_pack<1, T>(p.out_dtype, p.y, base + at, &dx);
    }
  }
}

}  // namespace

LS_ROW_KERNELS(softmax_backward, SoftmaxLines, softmax_backward_held, softmax_backward_stream)
LS_ROW_KERNEL(softmax_backward_f32_columns, SoftmaxLines, softmax_backward_columns<float>)
LS_ROW_KERNEL(softmax_backward_bf16_columns, SoftmaxLines, softmax_backward_columns<BFloat16>)
LS_ROW_KERNEL(softmax_backward_f16_columns, SoftmaxLines, softmax_backward_columns<Half>)
LS_ROW_KERNEL(softmax_backward_f64_columns, SoftmaxLines, softmax_backward_columns<double>)

}  // namespace lockstep::cuda
