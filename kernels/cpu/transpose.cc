#include "kernels/cpu/transpose.h"

#include <algorithm>
#include <utility>

#include "core/base/parallel.h"
#include "kernels/cpu/streaming.h"

namespace lockstep::cpu {

namespace {

/// A block that fits into the L1 cache while whole cache lines are used on both sides.
struct BlockShape {
  int64_t columns;
  int64_t column_bytes;  ///< bytes of a column of the output, which is contiguous in the input
};
constexpr int64_t kBlockBytes = 32768;
constexpr BlockShape kPlain = {64, 256};

/// Block shape for tensors larger than the caches: rows of two cache lines, and columns as long as
/// the block allows.
constexpr BlockShape streamed_shape(int64_t element_size) {
  const int64_t columns = std::min(128 / element_size, kPlain.columns);
  return {columns, std::min<int64_t>(512, kBlockBytes / columns)};
}

template <class T>
struct WordsOf {
  typedef T type __attribute__((vector_size(32)));
  typedef T unaligned __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
};
template <class T>
using Words = typename WordsOf<T>::type;

/// Transposes N rows of 2 N columns, where N elements are 16 bytes: interleaves the first half of N
/// vectors with the second, log2(N) times. The two halves of a vector never mix and hold two
/// columns.
template <class T>
void square(char* to, int64_t to_stride, const char* from, int64_t from_stride) {
  typedef int64_t Half __attribute__((vector_size(16), aligned(1), may_alias));
  constexpr int kSide = 16 / sizeof(T);
  // Element i of an interleaved pair's first vector comes from position source(i) of the two, and
  // that of its second from kSide / 2 further.
  constexpr auto source = [](int i) {
    const int half = i / kSide * kSide;
    return half + (i - half) / 2 + i % 2 * 2 * kSide;
  };
  const auto interleave = [&]<int... i>(std::integer_sequence<int, i...>, const Words<T>& a,
                                        const Words<T>& b, Words<T>* to) {
    to[0] = __builtin_shufflevector(a, b, source(i)...);
    to[1] = __builtin_shufflevector(a, b, (source(i) + kSide / 2)...);
  };
  Words<T> row[kSide], next[kSide];
  for (int i = 0; i < kSide; ++i) {
    const Half low = *reinterpret_cast<const Half*>(from + i * from_stride);
    const Half high = *reinterpret_cast<const Half*>(from + (i + kSide) * from_stride);
    row[i] = reinterpret_cast<Words<T>>(__builtin_shufflevector(low, high, 0, 1, 2, 3));
  }
  for (int step = 1; step < kSide; step *= 2) {
    for (int i = 0; i < kSide / 2; ++i) {
      interleave(std::make_integer_sequence<int, 2 * kSide>(), row[i], row[i + kSide / 2],
                 &next[2 * i]);
    }
    std::copy_n(next, kSide, row);
  }
  for (int i = 0; i < kSide; ++i) {
    *reinterpret_cast<typename WordsOf<T>::unaligned*>(to + i * to_stride) = row[i];
  }
}

/// Transposes any number of rows and columns of the output; strides are in bytes.
template <class T>
void elements(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t rows,
              int64_t columns) {
  const auto copy = [&](int64_t r, int64_t c) {
    const int64_t size = sizeof(T);
    *reinterpret_cast<T*>(to + r * to_stride + c * size) =
        *reinterpret_cast<const T*>(from + c * from_stride + r * size);
  };
  if (rows < columns) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) copy(r, c);
    }
  } else {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) copy(r, c);
    }
  }
}

template <class T>
void block_of(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t rows,
              int64_t columns) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kSide = 16 / kSize;
  if (rows < kSide || columns < 2 * kSide) {
    return elements<T>(to, to_stride, from, from_stride, rows, columns);
  }
  const int64_t whole_rows = rows / kSide * kSide;
  const int64_t whole_columns = columns / (2 * kSide) * (2 * kSide);
  constexpr int64_t kLine = 64 / kSize;  // a cache line is consumed before it can be evicted
  for (int64_t line = 0; line < whole_rows; line += kLine) {
    for (int64_t c = 0; c < whole_columns; c += 2 * kSide) {
      for (int64_t r = line; r < std::min(whole_rows, line + kLine); r += kSide) {
        square<T>(to + r * to_stride + c * kSize, to_stride, from + c * from_stride + r * kSize,
                  from_stride);
      }
    }
  }
  elements<T>(to + whole_columns * kSize, to_stride, from + whole_columns * from_stride,
              from_stride, whole_rows, columns - whole_columns);
  elements<T>(to + whole_rows * to_stride, to_stride, from + whole_rows * kSize, from_stride,
              rows - whole_rows, columns);
}

/// Copies `bytes` of each of n rows.
void copy_rows(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n,
               int64_t bytes) {
  using Piece = WordsOf<uint8_t>::unaligned;
  for (int64_t r = 0; r < n; ++r, to += to_stride, from += from_stride) {
    for (int64_t b = 0; b < bytes; b += static_cast<int64_t>(sizeof(Piece))) {
      *reinterpret_cast<Piece*>(to + b) = *reinterpret_cast<const Piece*>(from + b);
    }
  }
}

/// Returns the plan without its two innermost loops; dimension 0 becomes a single step.
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

TransposeBlock transpose_block(int64_t element_size) {
  switch (element_size) {
    case 1:
      return &block_of<uint8_t>;
    case 2:
      return &block_of<uint16_t>;
    case 4:
      return &block_of<uint32_t>;
    default:
      return &block_of<uint64_t>;
  }
}

int transposed_dimension(const StridedPlan& plan, int64_t element_size) {
  if (plan.strides[0][0] != element_size || plan.sizes[0] < 2) return 0;
  if (plan.strides[1][0] == element_size || plan.strides[1][0] == 0) return 0;
  for (int i = 1; i < plan.rank; ++i) {
    if (plan.strides[1][i] == element_size && plan.sizes[i] >= 4) return i;
  }
  return 0;
}

void transpose_copy(const StridedPlan& plan, int dimension, int64_t element_size) {
  const TransposeBlock block = transpose_block(element_size);
  const StridedPlan outer = outer_loops(plan, dimension);
  const int64_t rows = plan.sizes[dimension];
  const int64_t columns = plan.sizes[0];
  const int64_t to_stride = plan.strides[0][dimension];
  const int64_t from_stride = plan.strides[1][0];
  // Plain stores are expensive here (they would first read the output, in short runs pages apart),
  // so streaming starts at half the size.
  const bool streamed = worth_streaming(2 * (2 * plan.numel * element_size));
  const BlockShape shape = streamed ? streamed_shape(element_size) : kPlain;
  const int64_t height = shape.column_bytes / element_size;  // rows per block
  const int64_t bands = (rows + height - 1) / height;
  const int64_t grain = std::max<int64_t>(1, 32768 / (height * columns));
  parallel_for(0, outer.numel * bands, grain, [&](int64_t first, int64_t last) {
    alignas(64) char whole[kBlockBytes];
    RowWalker walker(outer, first / bands);
    int64_t band = first % bands;
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = band * height;
      char* to = walker.address(0) + row * to_stride;
      const char* from = walker.address(1) + row * element_size;
      const int64_t count = std::min(height, rows - row);
      for (int64_t c = 0; c < columns; c += shape.columns) {
        char* const block_to = to + c * element_size;
        const char* const block_from = from + c * from_stride;
        if (columns - c < shape.columns) {
          block(block_to, to_stride, block_from, from_stride, count, columns - c);
          break;
        }
        // Transposes into a dense block first: the output's rows may all map to one cache set,
        // which would evict each line before it is full.
        const int64_t width = shape.columns * element_size;
        if (streamed) {
          fetch_columns(block_from + shape.columns * from_stride, from_stride, shape.columns,
                        count * element_size);
        }
        block(whole, width, block_from, from_stride, count, shape.columns);
        if (streamed) {
          for (int64_t r = 0; r < count; ++r)
            stream(block_to + r * to_stride, whole + r * width, width);
        } else {
          copy_rows(block_to, to_stride, whole, width, count, width);
        }
      }
      if (++band == bands) {
        band = 0;
        walker.next();
      }
    }
    if (streamed) finish_streaming();
  });
}

}  // namespace lockstep::cpu
