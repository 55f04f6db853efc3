#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/index/embedding.h"
#include "kernels/cuda/index/index_list.h"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

namespace {

/// Adds pack k of the next kUses gradients if all of them belong to `row`; else returns false.
template <int kUses, class T, int kWidth, class C>
__device__ bool add_rows(const EmbeddingSum& p, const Pack<T, kWidth>* grad, int64_t packs,
                         int64_t k, int64_t use, uint32_t row, C (&sum)[kWidth]) {
  if (use + kUses > p.count || p.rows[use + kUses - 1] != row) return false;
  Pack<T, kWidth> part[kUses];
#pragma unroll
  for (int j = 0; j < kUses; ++j) part[j] = grad[p.positions[use + j] * packs + k];
#pragma unroll
  for (int j = 0; j < kUses; ++j) {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) sum[c] += convert<C>(part[j].at[c]);
  }
  return true;
}

/// One block per first use of a row; each thread sums kWidth adjacent columns.
template <class T, int kWidth>
__device__ void sum_uses(const EmbeddingSum& p) {
  using C = ComputeType<T>;
  using Columns = Pack<T, kWidth>;
  const int64_t packs = p.width / kWidth;
  const auto* const grad = static_cast<const Columns*>(p.grad);
  auto* const out = static_cast<Columns*>(p.out);
  for (int64_t first = blockIdx.x; first < p.count; first += gridDim.x) {
    const uint32_t row = p.rows[first];
    if (row == IndexList::kNoPlace) return;
    if (first > 0 && p.rows[first - 1] == row) continue;
    for (int64_t k = threadIdx.x; k < packs; k += blockDim.x) {
      C sum[kWidth] = {};
      int64_t use = first;
      // Adds in order; the unrolled versions keep many loads in flight.
      while (add_rows<16>(p, grad, packs, k, use, row, sum)) use += 16;
      while (add_rows<4>(p, grad, packs, k, use, row, sum)) use += 4;
      while (add_rows<1>(p, grad, packs, k, use, row, sum)) ++use;
      Columns result;
      const Columns before = p.adds ? out[row * packs + k] : Columns{};
      for (int c = 0; c < kWidth; ++c) {
        if (p.divides) sum[c] /= static_cast<C>(use - first);
        result.at[c] = convert<T>(sum[c]);
        if (p.adds) {
          result.at[c] = convert<T>(convert<C>(before.at[c]) + convert<C>(result.at[c]));
        }
      }
      out[row * packs + k] = result;
    }
  }
}

}  // namespace

LS_CUDA_KERNEL(embedding_sum_f32, EmbeddingSum, 128) { sum_uses<float, 1>(p); }
LS_CUDA_KERNEL(embedding_sum_f64, EmbeddingSum, 128) { sum_uses<double, 1>(p); }
LS_CUDA_KERNEL(embedding_sum_f16, EmbeddingSum, 128) { sum_uses<Half, 1>(p); }
LS_CUDA_KERNEL(embedding_sum_bf16, EmbeddingSum, 128) { sum_uses<BFloat16, 1>(p); }
LS_CUDA_KERNEL(embedding_sum_f32_wide, EmbeddingSum, 128) { sum_uses<float, 4>(p); }
LS_CUDA_KERNEL(embedding_sum_f64_wide, EmbeddingSum, 128) { sum_uses<double, 2>(p); }
LS_CUDA_KERNEL(embedding_sum_f16_wide, EmbeddingSum, 128) { sum_uses<Half, 8>(p); }
LS_CUDA_KERNEL(embedding_sum_bf16_wide, EmbeddingSum, 128) { sum_uses<BFloat16, 8>(p); }

}  // namespace lockstep::cuda
