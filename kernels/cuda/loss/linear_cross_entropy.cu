#include "kernels/cuda/index/index_list.cuh"
#include "kernels/cuda/loss/loss.h"
#include "kernels/cuda/loss/max_sum.cuh"
#include "kernels/cuda/rows.cuh"

namespace lockstep::cuda {

namespace {

/// The largest of the numbers; NaN only if there is nothing else.
struct LargestNumber {
  using Element = float;
  __device__ static float combine(float a, float b) { return b > a || a != a ? b : a; }
};

/// One block per row, which is read once and kept in shared memory until its gradient is written.
/// Each thread reads back what it wrote itself. The last pack may end past the row.
template <class T>
__device__ void loss_and_gradient(const HeldCrossEntropy& p) {
  constexpr int kPack = 16 / sizeof(T);
  constexpr int kRun = 4;  // packs loaded before they are used
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  using Packed = Pack<T, kPack>;
  auto* const held = dynamic_shared<Packed>();
  const int classes = static_cast<int>(p.classes);
  const int packs = (classes + kPack - 1) / kPack;
  const int step = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const float scale = static_cast<float>(p.scale);
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    T* const x = static_cast<T*>(p.x) + row * p.stride;
    auto* const of_row = reinterpret_cast<Packed*>(x);
    const int64_t target = read_index(p.targets, row);

    float largest = kNone;
    const auto hold = [&](int i, Packed pack) {
      if ((i + 1) * kPack > classes) {
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          if (i * kPack + k >= classes) pack.at[k] = convert<T>(kNone);
        }
      }
      held[i] = pack;
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        largest = LargestNumber::combine(largest, convert<float>(pack.at[k]));
      }
    };
    int first = thread;
    for (; first + (kRun - 1) * step < packs; first += kRun * step) {
      Packed run[kRun];
#pragma unroll
      for (int k = 0; k < kRun; ++k) run[k] = of_row[first + k * step];
#pragma unroll
      for (int k = 0; k < kRun; ++k) hold(first + k * step, run[k]);
    }
    for (; first < packs; first += step) hold(first, of_row[first]);
    largest = block_join<LargestNumber>(largest);
    const float shift = largest > kNone ? largest : 0.0F;  // without a number above, any will do

    float sum = 0;
    for (int i = thread; i < packs; i += step) {
      const Packed pack = held[i];
#pragma unroll
      for (int k = 0; k < kPack; ++k) sum += exp_for<T>(convert<float>(pack.at[k]) - shift);
    }
    const float logsumexp = shift + elementary::log(block_sum(sum));
    if (thread == 0) {
      const T* const scores = reinterpret_cast<const T*>(held);
      p.losses[row] = target < 0 ? 0.0F : logsumexp - convert<float>(scores[target]);
    }

    for (int i = thread; i < packs; i += step) {
      const Packed pack = held[i];
      float values[kPack];
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        const float part = exp_for<T>(convert<float>(pack.at[k]) - logsumexp);
        values[k] = target < 0 ? 0.0F : scale * part;
      }
      of_row[i] = converted_pack<T, kPack>(values);
    }
    if (target >= 0 && target / kPack % step == thread) {  // this thread wrote it above
      const T score = held[target / kPack].at[target % kPack];
      x[target] = convert<T>(scale * exp_for<T>(convert<float>(score) - logsumexp) - scale);
    }
    __syncthreads();  // the loss reads what the next row overwrites
  }
}

}  // namespace

LS_CUDA_KERNEL(linear_cross_entropy_held_f32, HeldCrossEntropy, kHeldThreads) {
  loss_and_gradient<float>(p);
}
LS_CUDA_KERNEL(linear_cross_entropy_held_bf16, HeldCrossEntropy, kHeldThreads) {
  loss_and_gradient<BFloat16>(p);
}
LS_CUDA_KERNEL(linear_cross_entropy_held_f16, HeldCrossEntropy, kHeldThreads) {
  loss_and_gradient<Half>(p);
}

}  // namespace lockstep::cuda
