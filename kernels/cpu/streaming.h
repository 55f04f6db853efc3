#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep::cpu {

/// Non-temporal stores, for results larger than the caches. A plain store first reads the cache
/// line that it overwrites and evicts lines that are still needed; a non-temporal store does
/// neither, which saves up to half of the memory traffic of a memory-bound kernel.

/// True if a kernel that reads and writes `bytes` in all should use non-temporal stores. Smaller
/// results may stay in cache for the next kernel.
bool worth_streaming(int64_t bytes);

/// Copies `bytes` with non-temporal stores; plain memcpy on processors without them.
void stream(void* to, const void* from, int64_t bytes);

/// Orders the calling thread's non-temporal stores before its later writes. Call it before
/// signalling other threads that the results are ready.
void finish_streaming();

/// Prefetches `bytes`. The address need not be valid.
inline void fetch_ahead(const char* address, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(address + i);
}
/// Prefetches `bytes` of each of n columns to the L2 cache: they are needed later than L1 would
/// keep them.
inline void fetch_columns(const char* address, int64_t stride, int64_t n, int64_t bytes) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < bytes; k += 64) __builtin_prefetch(address + i * stride + k, 0, 2);
  }
}

/// Calls body(first, count) for pieces of a cached row of n elements, and prefetches the
/// corresponding pieces of the row after it, which uses memory bandwidth that would be idle.
template <class T, class Body>
void fetching_next_row(const T* row, int64_t n, Body body) {
  constexpr int64_t kPiece = 256;
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t count = std::min(kPiece, n - i);
    fetch_ahead(reinterpret_cast<const char*>(row + n + i),
                count * static_cast<int64_t>(sizeof(T)));
    body(i, count);
  }
}

}  // namespace lockstep::cpu
