#include "kernels/cpu/streaming.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace lockstep::cpu {

namespace {

/// Upper bound of the L3 size: a few cores cannot use all of a larger cache that many share.
constexpr int64_t kMostShare = int64_t{96} << 20;
constexpr int64_t kUnknownSize = int64_t{32} << 20;

int64_t cache_bytes() {
  const int64_t size = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::min(size > 0 ? size : kUnknownSize, kMostShare);
}

}  // namespace

bool worth_streaming(int64_t bytes) {
#if defined(__AVX__)
  static const int64_t kCache = cache_bytes();
  return bytes > kCache;
#else
  (void)bytes;
  return false;
#endif
}

void stream(void* to, const void* from, int64_t bytes) {
#if defined(__AVX__)
  constexpr int64_t kVector = sizeof(__m256i);
  constexpr int64_t kLine = 2 * kVector;
  char* y = static_cast<char*>(to);
  const char* x = static_cast<const char*>(from);
  // Partially streamed lines would cost more than plain stores, so only whole lines are streamed.
  const int64_t head = std::min(bytes, -reinterpret_cast<intptr_t>(y) & (kLine - 1));
  std::memcpy(y, x, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    for (int64_t k = 0; k < kLine; k += kVector) {
      const __m256i value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i + k));
      _mm256_stream_si256(reinterpret_cast<__m256i*>(y + i + k), value);
    }
  }
  std::memcpy(y + i, x + i, static_cast<size_t>(bytes - i));
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

void finish_streaming() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

}  // namespace lockstep::cpu
