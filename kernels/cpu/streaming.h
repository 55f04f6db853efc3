#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep::cpu {

/// Stores that go past the caches, for results that are larger than those. A plain store first
/// reads the line that it is about to overwrite, and pushes out of the cache what is still wanted
/// there; a streamed one does neither, which saves up to half of the traffic where memory bounds a
/// kernel.

/// Whether a kernel that reads and writes `bytes` of memory in all should stream its results: what
/// a cache could hold for the next kernel is better left there.
bool worth_streaming(int64_t bytes);

/// Copies `bytes` from a cache to memory. On processors without such stores it is memcpy.
void stream(void* to, const void* from, int64_t bytes);

/// Orders what the calling thread has streamed before what it writes next: to be called before
/// another thread is told that the results are there.
void finish_streaming();

/// Asks for `bytes` that are read soon. The memory need not exist.
inline void fetch_ahead(const char* address, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(address + i);
}
/// The same for `bytes` of each of n columns, but not to the first cache: they are read later.
inline void fetch_columns(const char* address, int64_t stride, int64_t n, int64_t bytes) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < bytes; k += 64) __builtin_prefetch(address + i * stride + k, 0, 2);
  }
}

/// Calls body(first, count) for pieces of a row of n elements that is in a cache, while memory
/// would idle, and fetches the same pieces of the row behind it.
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
