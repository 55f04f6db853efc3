#include "kernels/cpu/transpose.h"

#include <algorithm>

#include "core/parallel.h"

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace lockstep::cpu {

namespace {

/// Elements of a block's side: a block of f32 is 16 KB.
constexpr int64_t kBlock = 64;

template <class T>
void block_elements(char* to, int64_t to_stride, const char* from, int64_t from_stride,
                    int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    T* out = reinterpret_cast<T*>(to + r * to_stride);
    const char* in = from + r * static_cast<int64_t>(sizeof(T));
    for (int64_t c = 0; c < columns; ++c) {
      out[c] = *reinterpret_cast<const T*>(in + c * from_stride);
    }
  }
}

#if defined(__AVX__)
/// 8 x 8 words of 4 bytes: pairs of rows are interleaved, then quarters, then halves exchanged.
void eight_by_eight(char* to, int64_t to_stride, const char* from, int64_t from_stride) {
  __m256 row[8];
  __m256 pair[8];
  for (int i = 0; i < 8; ++i) {
    row[i] = _mm256_loadu_ps(reinterpret_cast<const float*>(from + i * from_stride));
  }
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    row[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    row[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
    row[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    row[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(reinterpret_cast<float*>(to + i * to_stride),
                     _mm256_permute2f128_ps(row[i], row[i + 4], 0x20));
    _mm256_storeu_ps(reinterpret_cast<float*>(to + (i + 4) * to_stride),
                     _mm256_permute2f128_ps(row[i], row[i + 4], 0x31));
  }
}
#endif

void block_of_words(char* to, int64_t to_stride, const char* from, int64_t from_stride,
                    int64_t rows, int64_t columns) {
#if defined(__AVX__)
  const int64_t whole_rows = rows / 8 * 8;
  const int64_t whole_columns = columns / 8 * 8;
  for (int64_t r = 0; r < whole_rows; r += 8) {
    for (int64_t c = 0; c < whole_columns; c += 8) {
      eight_by_eight(to + r * to_stride + c * 4, to_stride, from + c * from_stride + r * 4,
                     from_stride);
    }
  }
  block_elements<uint32_t>(to + whole_columns * 4, to_stride, from + whole_columns * from_stride,
                           from_stride, whole_rows, columns - whole_columns);
  block_elements<uint32_t>(to + whole_rows * to_stride, to_stride, from + whole_rows * 4,
                           from_stride, rows - whole_rows, columns);
#else
  block_elements<uint32_t>(to, to_stride, from, from_stride, rows, columns);
#endif
}

using BlockFunction = void (*)(char*, int64_t, const char*, int64_t, int64_t, int64_t);

BlockFunction block_function(int64_t element_size) {
  switch (element_size) {
    case 1:
      return &block_elements<uint8_t>;
    case 2:
      return &block_elements<uint16_t>;
    case 4:
      return &block_of_words;
    default:
      return &block_elements<uint64_t>;
  }
}

/// The plan without its two innermost loops: dimension 0 becomes a single step.
StridedPlan outer_loops(const StridedPlan& plan, int dimension) {
  StridedPlan outer;
  outer.operands = plan.operands;
  outer.rank = 1;
  outer.numel = 1;
  outer.sizes[0] = 1;
  std::copy_n(plan.address, plan.operands, outer.address);
  for (int i = 1; i < plan.rank; ++i) {
    if (i == dimension) continue;
    outer.sizes[outer.rank] = plan.sizes[i];
    outer.numel *= plan.sizes[i];
    for (int o = 0; o < plan.operands; ++o) outer.strides[o][outer.rank] = plan.strides[o][i];
    ++outer.rank;
  }
  return outer;
}

}  // namespace

int transposed_dimension(const StridedPlan& plan, int64_t element_size) {
  if (plan.strides[0][0] != element_size || plan.sizes[0] < 4) return 0;
  if (plan.strides[1][0] == element_size || plan.strides[1][0] == 0) return 0;
  for (int i = 1; i < plan.rank; ++i) {
    if (plan.strides[1][i] == element_size && plan.sizes[i] >= 4) return i;
  }
  return 0;
}

void transpose_copy(const StridedPlan& plan, int dimension, int64_t element_size) {
  const BlockFunction block = block_function(element_size);
  const StridedPlan outer = outer_loops(plan, dimension);
  const int64_t rows = plan.sizes[dimension];
  const int64_t columns = plan.sizes[0];
  const int64_t to_stride = plan.strides[0][dimension];
  const int64_t from_stride = plan.strides[1][0];
  const int64_t bands = (rows + kBlock - 1) / kBlock;
  const int64_t grain = std::max<int64_t>(1, 32768 / (kBlock * columns));
  parallel_for(0, outer.numel * bands, grain, [&](int64_t first, int64_t last) {
    RowWalker walker(outer, first / bands);
    int64_t band = first % bands;
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = band * kBlock;
      char* to = walker.address(0) + row * to_stride;
      const char* from = walker.address(1) + row * element_size;
      for (int64_t c = 0; c < columns; c += kBlock) {
        block(to + c * element_size, to_stride, from + c * from_stride, from_stride,
              std::min(kBlock, rows - row), std::min(kBlock, columns - c));
      }
      if (++band == bands) {
        band = 0;
        walker.next();
      }
    }
  });
}

}  // namespace lockstep::cpu
