#include "kernels/cuda/index/index_list.cuh"
#include "kernels/cuda/loss/loss.h"
#include "kernels/cuda/loss/max_sum.cuh"
#include "kernels/cuda/rows.cuh"

namespace lockstep::cuda {

namespace {

template <class T>
__device__ void cross_entropy_rows(const CrossEntropyRows& p) {
  using C = ComputeType<T>;
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T* const x = static_cast<const T*>(p.x) + row * p.classes;
    MaxSum<C> part = MaxSum<C>::none();
    each_pack<T, BlockRows>(x, p.classes, [&](int64_t i, auto width) {
      C values[width.kPack];
      load_pack<width.kPack>(x + i, values);
      part.template add<width.kPack, T>(values);
    });
    const MaxSum<C> whole = block_join<JoinMaxSum<C>>(part);
    if (threadIdx.x != 0) continue;
    const C total = whole.shift() + elementary::log(whole.sum);
    static_cast<C*>(p.logsumexp)[row] = total;
    const int64_t target = read_index(p.targets, row);
    const C loss = target < 0 ? C(0) : total - convert<C>(x[target]);
    if (p.each != nullptr) {
      static_cast<C*>(p.each)[row] = loss;
    } else {
      static_cast<C*>(p.losses)[row] = loss;
    }
  }
}

template <class T>
__device__ void cross_entropy_total(const CrossEntropyTotal& p) {
  double loss = 0;
  int64_t used = 0;
  for (int64_t row = threadIdx.x; row < p.rows; row += blockDim.x) {
    loss += static_cast<double>(static_cast<const ComputeType<T>*>(p.losses)[row]);
    used += read_index(p.targets, row) >= 0 ? 1 : 0;
  }
  loss = block_sum(loss);
  used = block_sum(used);
  if (threadIdx.x != 0) return;
  *static_cast<ComputeType<T>*>(p.out) =
      static_cast<ComputeType<T>>(p.is_mean ? loss / static_cast<double>(used) : loss);
}

template <class T>
__device__ void cross_entropy_backward(const CrossEntropyBackward& p) {
  using C = ComputeType<T>;
  const double shared = p.used == nullptr ? p.scale : p.scale / static_cast<double>(*p.used);
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T* const x = static_cast<const T*>(p.x) + row * p.classes;
    T* const dx = static_cast<T*>(p.out) + row * p.classes;
    const int64_t target = read_index(p.targets, row);
    const C logsumexp = static_cast<const C*>(p.logsumexp)[row];
    const C grad =
        p.grads == nullptr ? C(1) : static_cast<const C*>(p.grads)[p.grad_of_each ? row : 0];
    const C scale = static_cast<C>(static_cast<double>(grad) * shared);
    const bool together = alike(x, dx);
    each_pack<T, BlockRows>(x, p.classes, [&](int64_t i, auto width) {
      C values[width.kPack];
      load_pack<width.kPack>(x + i, values);
      for (int k = 0; k < width.kPack; ++k) {
        const C part = scale * exp_for<T>(values[k] - logsumexp);
        values[k] = target < 0 ? C(0) : i + k == target ? part - scale : part;
      }
      if (together) {
        store_pack<width.kPack>(dx + i, values);
      } else {
        for (int k = 0; k < width.kPack; ++k) dx[i + k] = convert<T>(values[k]);
      }
    });
  }
}

template <class T>
__device__ double weight_of(const void* weight, int64_t target) {
  return weight == nullptr ? 1.0 : convert<double>(static_cast<const T*>(weight)[target]);
}

template <class T>
__device__ void nll_loss(const NllLoss& p) {
  double loss = 0, total = 0;
  for (int64_t row = threadIdx.x; row < p.rows; row += blockDim.x) {
    const int64_t target = read_index(p.targets, row);
    double each = 0;
    if (target >= 0) {
      const double scale = weight_of<T>(p.weight, target);
      each = -scale * convert<double>(static_cast<const T*>(p.x)[row * p.classes + target]);
      total += scale;
    }
    if (p.is_each) static_cast<T*>(p.out)[row] = convert<T>(each);
    loss += each;
  }
  loss = block_sum(loss);
  total = block_sum(total);
  if (threadIdx.x != 0) return;
  if (!p.is_each) *static_cast<T*>(p.out) = convert<T>(p.is_mean ? loss / total : loss);
  *static_cast<T*>(p.total_weight) = convert<T>(p.clears_total ? 0.0 : total);
}

template <class T>
__device__ void nll_loss_backward(const NllLossBackward& p) {
  const double shared = p.total_weight == nullptr
                            ? 1.0
                            : 1.0 / convert<double>(*static_cast<const T*>(p.total_weight));
  for (int64_t i = grid_thread(); i < p.rows * p.classes; i += grid_threads()) {
    const int64_t row = i / p.classes;
    double value = 0;
    if (const int64_t target = read_index(p.targets, row); target == i - row * p.classes) {
      const T grad = static_cast<const T*>(p.grads)[p.grad_of_each ? row : 0];
      value = -convert<double>(grad) * weight_of<T>(p.weight, target) * shared;
    }
    static_cast<T*>(p.out)[i] = convert<T>(value);
  }
}

}  // namespace

LS_CUDA_KERNEL(loss_used_targets, UsedTargets, kTotalThreads) {
  int64_t used = 0;
  for (int64_t row = threadIdx.x; row < p.targets.count; row += blockDim.x) {
    used += read_index(p.targets, row) >= 0 ? 1 : 0;
  }
  used = block_sum(used);
  if (threadIdx.x == 0) *p.used = used;
}

#define LS_LOSS_KERNELS(T, Suffix)                                                          \
  LS_CUDA_KERNEL(loss_cross_entropy_rows_##Suffix, CrossEntropyRows, kRowThreads) {         \
    cross_entropy_rows<T>(p);                                                               \
  }                                                                                         \
  LS_CUDA_KERNEL(loss_cross_entropy_total_##Suffix, CrossEntropyTotal, kTotalThreads) {     \
    cross_entropy_total<T>(p);                                                              \
  }                                                                                         \
  LS_CUDA_KERNEL(loss_cross_entropy_backward_##Suffix, CrossEntropyBackward, kRowThreads) { \
    cross_entropy_backward<T>(p);                                                           \
  }                                                                                         \
  LS_CUDA_KERNEL(loss_nll_##Suffix, NllLoss, kTotalThreads) { nll_loss<T>(p); }             \
  LS_CUDA_KERNEL(loss_nll_backward_##Suffix, NllLossBackward, 256) { nll_loss_backward<T>(p); }

LS_LOSS_KERNELS(float, f32)
LS_LOSS_KERNELS(double, f64)
LS_LOSS_KERNELS(Half, f16)
LS_LOSS_KERNELS(BFloat16, bf16)

}  // namespace lockstep::cuda
