#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

/// How rows are assigned to threads by kernels that need a whole contiguous row before writing it.
enum class RowStrategy : uint8_t {
  kWarp8,        ///< a warp per row, held in registers: 8 elements per thread
  kWarp32,       ///< a warp per row, 32 elements per thread
  kBlock8,       ///< a block per row, 8 elements per thread
  kBlock32,      ///< a block per row, 32 elements per thread
  kWarpScalar,   ///< kWarp32 for rows that are not aligned, or not a multiple of 16 bytes
  kBlockScalar,  ///< kBlock32 for such rows
  kStream,       ///< a block per row, reading it from memory in each pass
};
inline constexpr int kRowStrategies = 7;
inline constexpr int kRowThreads = 256;

/// `aligned`: all rows start and end at multiples of 16 bytes.
constexpr RowStrategy row_strategy(DType dtype, int64_t n, bool aligned) {
  const bool scalar = !aligned || dtype == DType::kF64;
  if (n > kRowThreads * 32) return RowStrategy::kStream;
  if (n > 32 * 32) {
    if (scalar) return RowStrategy::kBlockScalar;
    return n <= kRowThreads * 8 ? RowStrategy::kBlock8 : RowStrategy::kBlock32;
  }
  if (scalar) return RowStrategy::kWarpScalar;
  return n <= 32 * 8 ? RowStrategy::kWarp8 : RowStrategy::kWarp32;
}

/// Rows that a block processes at a time.
constexpr int64_t rows_of_block(RowStrategy strategy) {
  const bool warps = strategy == RowStrategy::kWarp8 || strategy == RowStrategy::kWarp32 ||
                     strategy == RowStrategy::kWarpScalar;
  return warps ? kRowThreads / 32 : 1;
}

constexpr const char* name(RowStrategy strategy) {
  constexpr const char* kNames[] = {"warp8",       "warp32",       "block8", "block32",
                                    "warp_scalar", "block_scalar", "stream"};
  return kNames[static_cast<int>(strategy)];
}

/// True if rows of n elements from `address` on start and end at multiples of 16 bytes, or
/// `address` is null.
inline bool rows_aligned(const void* address, DType dtype, int64_t n) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0 &&
         n * static_cast<int64_t>(size_of(dtype)) % 16 == 0;
}

}  // namespace lockstep::cuda
