#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

/// How kernels that need all of a contiguous row before they write it share out the rows.
enum class RowWay : uint8_t {
  kWarp8,        ///< a warp for a row, which holds it in registers: 8 elements a thread
  kWarp32,       ///< the same, 32 elements a thread
  kBlock8,       ///< a block for a row, 8 elements a thread
  kBlock32,      ///< the same, 32 elements a thread
  kWarpScalar,   ///< kWarp32 for rows that are not made of whole 16 bytes
  kBlockScalar,  ///< kBlock32 for these
  kStream,       ///< a block for a row that it reads from memory each time
};
inline constexpr int kRowWays = 7;
inline constexpr int kRowThreads = 256;

/// `aligned`: all rows start at multiples of 16 bytes and end there.
constexpr RowWay row_way(DType dtype, int64_t n, bool aligned) {
  const bool scalar = !aligned || dtype == DType::kF64;
  if (n > kRowThreads * 32) return RowWay::kStream;
  if (n > 32 * 32) {
    if (scalar) return RowWay::kBlockScalar;
    return n <= kRowThreads * 8 ? RowWay::kBlock8 : RowWay::kBlock32;
  }
  if (scalar) return RowWay::kWarpScalar;
  return n <= 32 * 8 ? RowWay::kWarp8 : RowWay::kWarp32;
}

/// Rows that a block takes at a time.
constexpr int64_t rows_of_block(RowWay way) {
  const bool warps = way == RowWay::kWarp8 || way == RowWay::kWarp32 || way == RowWay::kWarpScalar;
  return warps ? kRowThreads / 32 : 1;
}

constexpr const char* name(RowWay way) {
  constexpr const char* kNames[] = {"warp8",       "warp32",       "block8", "block32",
                                    "warp_scalar", "block_scalar", "stream"};
  return kNames[static_cast<int>(way)];
}

/// Whether rows of n elements from `address` on start and end at multiples of 16 bytes; yes for
/// what is absent.
inline bool rows_aligned(const void* address, DType dtype, int64_t n) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0 &&
         n * static_cast<int64_t>(size_of(dtype)) % 16 == 0;
}

}  // namespace lockstep::cuda
