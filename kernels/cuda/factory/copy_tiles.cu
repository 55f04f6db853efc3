#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/factory/copy_tiles.h"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kSide = static_cast<int>(CopyTiles::kSide);

/// One block per tile. A warp reads a column of it, contiguous in `from`, and writes a row,
/// contiguous in `to`; each thread moves kWidth elements at a time.
template <class T, int kWidth>
__device__ void copy_tiles(const CopyTiles& p) {
  using Elements = Pack<T, kWidth>;
  constexpr int kLines = kSide * kWidth;  // rows and columns of a tile
  constexpr int kWarps = kThreads / kWarpThreads;
  constexpr int kEach = kLines / kWarps;
  __shared__ Elements tile[kLines][kSide + 1];  // padded by one to avoid bank conflicts
  const int lane = lane_index() * kWidth;
  for (int64_t number = blockIdx.x; number < p.tiles; number += gridDim.x) {
    const int64_t line = p.across.quotient(number);
    const int64_t matrix = p.down.quotient(line);
    const int64_t column = (number - line * p.across.divisor) * kLines;
    const int64_t row = (line - matrix * p.down.divisor) * kLines;
    int64_t at[2];
    p.matrices.offsets(matrix, at);
    const char* const from = p.from + at[1] + (row + lane) * static_cast<int64_t>(sizeof(T));
    char* const to = p.to + at[0] + (column + lane) * static_cast<int64_t>(sizeof(T));

    Elements read[kEach];
    if (row + lane < p.rows) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int64_t c = column + warp_index() + i * kWarps;
        if (c < p.columns) read[i] = *reinterpret_cast<const Elements*>(from + c * p.from_column);
      }
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) tile[warp_index() + i * kWarps][lane_index()] = read[i];
    __syncthreads();
    if (column + lane < p.columns) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int in_tile = warp_index() + i * kWarps;
        if (row + in_tile >= p.rows) break;
        Elements written;
        for (int k = 0; k < kWidth; ++k) {
          written.at[k] = tile[lane + k][in_tile / kWidth].at[in_tile % kWidth];
        }
        *reinterpret_cast<Elements*>(to + (row + in_tile) * p.to_row) = written;
      }
    }
    __syncthreads();  // the next iteration overwrites the tile
  }
}

}  // namespace

LS_CUDA_KERNEL(copy_tiles_b1, CopyTiles, kThreads) { copy_tiles<uint8_t, 1>(p); }
LS_CUDA_KERNEL(copy_tiles_b2, CopyTiles, kThreads) { copy_tiles<uint16_t, 1>(p); }
LS_CUDA_KERNEL(copy_tiles_b4, CopyTiles, kThreads) { copy_tiles<uint32_t, 1>(p); }
LS_CUDA_KERNEL(copy_tiles_b8, CopyTiles, kThreads) { copy_tiles<uint64_t, 1>(p); }
LS_CUDA_KERNEL(copy_tiles_b16, CopyTiles, kThreads) { copy_tiles<uint4, 1>(p); }
LS_CUDA_KERNEL(copy_tiles_wide_b1, CopyTiles, kThreads) { copy_tiles<uint8_t, 4>(p); }
LS_CUDA_KERNEL(copy_tiles_wide_b2, CopyTiles, kThreads) { copy_tiles<uint16_t, 2>(p); }
LS_CUDA_KERNEL(copy_tiles_wide_b4, CopyTiles, kThreads) { copy_tiles<uint32_t, 2>(p); }

}  // namespace lockstep::cuda
