#include <cmath>
#include <type_traits>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/matmul/matmul_tiles.h"

namespace lockstep::cuda {
namespace {

/// Type in which products of T are summed. Integers wrap around, so they are summed unsigned.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>,
                               std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>,
                               std::conditional_t<std::is_same_v<T, double>, double, float>>;

template <class S>
__device__ S multiply_add(S a, S b, S sum) {
  if constexpr (std::is_integral_v<S>) {
    return a * b + sum;
  } else {
    return std::fma(a, b, sum);
  }
}

constexpr int kTile = MatmulTiles::kTile;
constexpr int kDepth = MatmulTiles::kDepth;
constexpr int kThreads = MatmulTiles::kThreads;
constexpr int kSide = 16;  ///< threads along each side of a tile
constexpr int kEach = kTile / kSide;
/// Length of a tile line in shared memory, padded by one to avoid bank conflicts.
constexpr int kLine = kTile + 1;

/// Loads `lines` lines of an operand, each `depth` elements deep, into shared memory in depth-major
/// order, zero-padded. Adjacent threads read adjacent elements.
template <class T, class S>
__device__ void load_tile(S (&to)[kDepth][kLine], const T* from, int64_t lines, int64_t depth,
                          int64_t line_stride, int64_t depth_stride) {
  const bool along_depth = depth_stride == 1;
  for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
    const int line = along_depth ? i / kDepth : i % kTile;
    const int at = along_depth ? i % kDepth : i / kTile;
    to[at][line] = line < lines && at < depth
                       ? convert<S>(from[line * line_stride + at * depth_stride])
                       : S(0);
  }
}

/// R is the dtype of result and addend.
template <class T, class R>
__device__ void finish(const MatmulTiles& p, int64_t batch, int64_t row, int64_t column,
                       Sum<T> sum) {
  using S = Sum<T>;
  constexpr bool kInteger = std::is_integral_v<T>;
  S value = (kInteger ? static_cast<S>(p.integer_alpha) : static_cast<S>(p.alpha)) * sum;
  if (p.adds) {
    const S beta = kInteger ? static_cast<S>(p.integer_beta) : static_cast<S>(p.beta);
    const R* const addend = static_cast<const R*>(p.addend.data) + batch * p.addend.batch +
                            row * p.addend.row + column * p.addend.column;
    value = multiply_add(beta, convert<S>(*addend), value);
  }
  static_cast<R*>(p.result)[batch * p.batch_stride + row * p.ld + column] = convert<R>(value);
}

template <class T, class R = T>
__device__ void matmul(const MatmulTiles& p) {
  using S = Sum<T>;
  __shared__ S a_tile[kDepth][kLine];
  __shared__ S b_tile[kDepth][kLine];
  const int x = threadIdx.x % kSide;
  const int y = threadIdx.x / kSide;
  const int64_t across = p.across();
  const int64_t in_matrix = across * p.down();
  const int64_t tiles = p.tiles();
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t batch = tile / in_matrix;
    const int64_t row = tile % in_matrix / across * kTile;
    const int64_t column = tile % in_matrix % across * kTile;
    const T* const a = static_cast<const T*>(p.a.data) + batch * p.a.batch + row * p.a.row;
    const T* const b = static_cast<const T*>(p.b.data) + batch * p.b.batch + column * p.b.column;
    S sums[kEach][kEach] = {};
    for (int64_t first = 0; first < p.k; first += kDepth) {
      load_tile(a_tile, a + first * p.a.column, p.m - row, p.k - first, p.a.row, p.a.column);
      load_tile(b_tile, b + first * p.b.row, p.n - column, p.k - first, p.b.column, p.b.row);
      __syncthreads();
      // Elements beyond k are zero-padded.
#pragma unroll
      for (int at = 0; at < kDepth; ++at) {
        S left[kEach];
        S right[kEach];
        for (int i = 0; i < kEach; ++i) left[i] = a_tile[at][y + i * kSide];
        for (int j = 0; j < kEach; ++j) right[j] = b_tile[at][x + j * kSide];
        for (int i = 0; i < kEach; ++i) {
          for (int j = 0; j < kEach; ++j) {
            sums[i][j] = multiply_add(left[i], right[j], sums[i][j]);
          }
        }
      }
      __syncthreads();
    }
    for (int i = 0; i < kEach; ++i) {
      const int64_t at_row = row + y + i * kSide;
      for (int j = 0; j < kEach; ++j) {
        const int64_t at_column = column + x + j * kSide;
        if (at_row < p.m && at_column < p.n) finish<T, R>(p, batch, at_row, at_column, sums[i][j]);
      }
    }
  }
}

}  // namespace

LS_CUDA_KERNEL(matmul_f64, MatmulTiles, 256) { matmul<double>(p); }
LS_CUDA_KERNEL(matmul_f32, MatmulTiles, 256) { matmul<float>(p); }
LS_CUDA_KERNEL(matmul_bf16, MatmulTiles, 256) { matmul<BFloat16>(p); }
LS_CUDA_KERNEL(matmul_f16, MatmulTiles, 256) { matmul<Half>(p); }
LS_CUDA_KERNEL(matmul_bf16_wide, MatmulTiles, 256) { matmul<BFloat16, float>(p); }
LS_CUDA_KERNEL(matmul_f16_wide, MatmulTiles, 256) { matmul<Half, float>(p); }
LS_CUDA_KERNEL(matmul_i64, MatmulTiles, 256) { matmul<int64_t>(p); }
LS_CUDA_KERNEL(matmul_i32, MatmulTiles, 256) { matmul<int32_t>(p); }
LS_CUDA_KERNEL(matmul_i16, MatmulTiles, 256) { matmul<int16_t>(p); }
LS_CUDA_KERNEL(matmul_i8, MatmulTiles, 256) { matmul<int8_t>(p); }
LS_CUDA_KERNEL(matmul_u8, MatmulTiles, 256) { matmul<uint8_t>(p); }

}  // namespace lockstep::cuda
