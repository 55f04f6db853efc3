#include "kernels/cpu/random/random_blocks.h"

#include <algorithm>

#include "core/base/parallel.h"
#include "core/base/philox.h"
#include "kernels/common/random_numbers.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lockstep::cpu {

namespace {

#if defined(__AVX2__)

/// High and low 32-bit halves of eight 32 x 32-bit products.
struct Products {
  __m256i high;
  __m256i low;
};
inline Products multiply(__m256i a, __m256i factor) {
  const __m256i even = _mm256_mul_epu32(a, factor);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), factor);
  return {_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa),
          _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa)};
}

inline __m256i broadcast(uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }

/// philox() of core/base/philox.h for eight counters at once.
inline void philox_of_eight(__m256i (&counter)[4], std::array<uint32_t, 2> key) {
  const __m256i factor0 = broadcast(0xD2511F53);
  const __m256i factor1 = broadcast(0xCD9E8D57);
  for (int round = 0; round < 10; ++round) {
    const Products first = multiply(counter[0], factor0);
    const Products second = multiply(counter[2], factor1);
    counter[0] = _mm256_xor_si256(_mm256_xor_si256(second.high, counter[1]), broadcast(key[0]));
    counter[1] = second.low;
    counter[2] = _mm256_xor_si256(_mm256_xor_si256(first.high, counter[3]), broadcast(key[1]));
    counter[3] = first.low;
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
}

#endif

}  // namespace

void RandomBlock::draw(const RandomKey& key, uint64_t first_group) {
  // Only the low counter word changes within a block, because blocks start at multiples of 64.
  const std::array<uint32_t, 4> base = key.counter(first_group);
#if defined(__AVX2__)
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (int64_t g = 0; g < kGroups; g += 8) {
    __m256i counter[4] = {_mm256_add_epi32(broadcast(base[0] + static_cast<uint32_t>(g)), lanes),
                          broadcast(base[1]), broadcast(base[2]), broadcast(base[3])};
    philox_of_eight(counter, key.key());
    for (int k = 0; k < 4; ++k) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(&word[k][g]), counter[k]);
    }
  }
#else
  for (int64_t g = 0; g < kGroups; ++g) {
    const std::array<uint32_t, 4> words =
        philox({base[0] + static_cast<uint32_t>(g), base[1], base[2], base[3]}, key.key());
    for (int k = 0; k < 4; ++k) word[k][g] = words[k];
  }
#endif
}

void draw_mask(const RandomBlock& words, double p, uint8_t* keep) {
  const KeptWords kept(p);
  for (int64_t g = 0; g < RandomBlock::kGroups; ++g) {
    for (int k = 0; k < 4; ++k) keep[4 * g + k] = kept(words.word[k][g]);
  }
}

void draw_mask(const RandomKey& key, double p, int64_t first, int64_t count, uint8_t* keep) {
  constexpr int64_t kElements = 4 * RandomBlock::kGroups;
  RandomBlock words;
  uint8_t whole[kElements];
  for (const int64_t end = first + count; first < end;) {
    const int64_t skipped = first % kElements;
    const int64_t length = std::min(kElements - skipped, end - first);
    words.draw(key, static_cast<uint64_t>(first / kElements * RandomBlock::kGroups));
    draw_mask(words, p, whole);
    keep = std::copy_n(whole + skipped, length, keep);
    first += length;
  }
}

RandomKey next_call(Generator* generator) {
  return (generator != nullptr ? *generator : default_generator()).next_call();
}

void for_random_blocks(
    const RandomKey& key, int64_t elements, int64_t per_block,
    FunctionRef<void(const RandomBlock& words, int64_t first, int64_t count)> body) {
  const int64_t blocks = (elements + per_block - 1) / per_block;
  constexpr int64_t kGrain = 32;  // minimum blocks per task
  parallel_for(0, blocks, kGrain, [&](int64_t begin, int64_t end) {
    RandomBlock words;
    for (int64_t block = begin; block < end; ++block) {
      words.draw(key, static_cast<uint64_t>(block * RandomBlock::kGroups));
      const int64_t first = block * per_block;
      body(words, first, std::min(per_block, elements - first));
    }
  });
}

}  // namespace lockstep::cpu
