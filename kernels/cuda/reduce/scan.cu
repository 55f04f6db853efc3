#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/common/joins.h"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/reduce/scan.h"
#include "kernels/cuda/rows.cuh"

namespace lockstep::cuda {

namespace {

// Floats are accumulated in f64, integers in uint64, which wraps around. A scan has
//   Element      the state of a run of elements, and
//   identity()   the state of an empty run,
//   combine(a, b)   the state of run a followed by run b,
//   Bits, load(p, at)   the stored form of one element,
//   element(p, bits, is_first)   the run of one element, is_first if it starts its line,
//   result(e)    the output for a run that starts at the line's beginning.

template <class C>
using StoredAs = std::conditional_t<std::is_same_v<C, double>, double, int64_t>;
/// Loading and conversion are separate, so that several loads are in flight before one is used.
__device__ inline uint64_t load_bits(DType dtype, const void* from, int64_t at) {
  switch (element_size(dtype)) {
    case 1:
      return static_cast<const uint8_t*>(from)[at];
    case 2:
      return static_cast<const uint16_t*>(from)[at];
    case 4:
      return static_cast<const uint32_t*>(from)[at];
    default:
      return static_cast<const uint64_t*>(from)[at];
  }
}
template <class C>
__device__ C number_of(DType dtype, uint64_t bits) {
  return static_cast<C>(load_as<StoredAs<C>>(dtype, &bits));  // little-endian
}
template <class C>
__device__ void write(const ScanLines& p, int64_t at, C value) {
  store_as(p.dtype, static_cast<char*>(p.y) + at * element_size(p.dtype),
           static_cast<StoredAs<C>>(value));
}

/// A scan with an Op that combines numbers.
template <class Op>
struct ScanOf : Op {
  using Element = typename Op::Element;
  using Bits = uint64_t;
  __device__ static Bits load(const ScanLines& p, int64_t at) {
    return load_bits(p.dtype, p.x, at);
  }
  __device__ static Element element(const ScanLines& p, Bits bits, bool) {
    return number_of<Element>(p.dtype, bits);
  }
  __device__ static Element result(Element e) { return e; }
};

/// y[i] = decay[i] y[i - 1] + x[i]. A run is an affine map of the state before it: it multiplies
/// and adds. The first element of a line has no state before it, whatever its decay.
struct Recurrence {
  struct Element {
    double decay;
    double state;
  };
  __device__ static Element identity() { return {1, 0}; }
  __device__ static Element combine(const Element& a, const Element& b) {
    double decay = a.decay * b.decay;
    // An overflowing product must keep a state of 0 at 0, as its factors applied one by one would.
    if (std::isinf(decay) && !std::isinf(a.decay) && !std::isinf(b.decay)) {
      decay = std::copysign(std::numeric_limits<double>::max(), decay);
    }
    return {decay, b.decay * a.state + b.state};
  }
  struct Bits {
    uint64_t decay;
    uint64_t x;
  };
  __device__ static Bits load(const ScanLines& p, int64_t at) {
    return {load_bits(p.dtype, p.decay, at), load_bits(p.dtype, p.x, at)};
  }
  __device__ static Element element(const ScanLines& p, const Bits& bits, bool is_first) {
    return {is_first ? 0 : number_of<double>(p.dtype, bits.decay),
            number_of<double>(p.dtype, bits.x)};
  }
  __device__ static double result(const Element& e) { return e.state; }
};

/// log(e^a + e^b).
struct LogSum {
  using Element = double;
  __device__ static double identity() { return -std::numeric_limits<double>::infinity(); }
  __device__ static double combine(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    const double larger = a > b ? a : b;
    if (std::isinf(larger)) return larger;
    return larger + std::log1p(std::exp(-std::fabs(a - b)));
  }
};

/// Value of the lane `distance` below this one.
template <class T>
__device__ T lower_lane(T value, int distance) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  uint32_t words[sizeof(T) / 4];
  std::memcpy(words, &value, sizeof(T));
  for (uint32_t& word : words) word = __shfl_up_sync(kAllLanes, word, distance);
  std::memcpy(&value, words, sizeof(T));
  return value;
}

/// Value of the warp's last lane.
template <class T>
__device__ T last_lane(T value) {
  uint32_t words[sizeof(T) / 4];
  std::memcpy(words, &value, sizeof(T));
  for (uint32_t& word : words) word = __shfl_sync(kAllLanes, word, kWarpThreads - 1);
  std::memcpy(&value, words, sizeof(T));
  return value;
}

/// Exclusive and inclusive scan of the threads' values within the warp.
template <class Op>
struct WarpScan {
  using C = typename Op::Element;
  C before;
  C through;

  __device__ explicit WarpScan(C value) : through(value) {
#pragma unroll
    for (int distance = 1; distance < kWarpThreads; distance *= 2) {
      const C lower = lower_lane(through, distance);
      if (lane_index() >= distance) through = Op::combine(lower, through);
    }
    const C lower = lower_lane(through, 1);
    before = lane_index() == 0 ? Op::identity() : lower;
  }
};

/// Exclusive scan of the threads' values within the block, and their total.
template <class Op>
struct BlockScan {
  using C = typename Op::Element;
  C before;
  C all;

  __device__ explicit BlockScan(C value) {
    __shared__ C of_warps[kMostWarps];
    const WarpScan<Op> warp(value);
    if (lane_index() == kWarpThreads - 1) of_warps[warp_index()] = warp.through;
    __syncthreads();
    C warps = Op::identity();
    all = Op::identity();
    for (int i = 0; i < warp_count(); ++i) {
      if (i == warp_index()) warps = all;
      all = Op::combine(all, of_warps[i]);
    }
    before = Op::combine(warps, warp.before);
    __syncthreads();  // the next scan overwrites shared memory
  }
};

/// A part of a line, and the offset of the line.
struct LinePart {
  int64_t part;
  int64_t first;  ///< offset of the line's first element
  int64_t last;
  int64_t base;

  __device__ LinePart(const ScanLines& p, int64_t outer, int64_t number, int64_t inner)
      : part(number),
        first(part * p.part),
        last(first + p.part < p.n ? first + p.part : p.n),
        base(outer * p.n * p.inner + inner) {}
};

/// Calls visit(part, its index among the states) for every part of every line, one thread each;
/// adjacent threads process adjacent lines.
template <class Visit>
__device__ void each_line_part(const ScanLines& p, const Visit& visit) {
  const int64_t tasks = p.outer * p.parts * p.inner;
  for (int64_t task = grid_thread(); task < tasks; task += grid_threads()) {
    const int64_t outer_part = task / p.inner;
    const int64_t outer = outer_part / p.parts;
    visit(LinePart(p, outer, outer_part - outer * p.parts, task - outer_part * p.inner), task);
  }
}

/// Calls visit(index in the line, element) for a part's elements in order, loading several at a
/// time.
template <class Op, class Visit>
__device__ void each_element(const ScanLines& p, const LinePart& at, const Visit& visit) {
  constexpr int kRun = 4;
  for (int64_t i = at.first; i < at.last; i += kRun) {
    typename Op::Bits run[kRun];
#pragma unroll
    for (int k = 0; k < kRun; ++k) {
      if (i + k < at.last) run[k] = Op::load(p, at.base + (i + k) * p.inner);
    }
#pragma unroll
    for (int k = 0; k < kRun; ++k) {
      if (i + k < at.last) visit(i + k, Op::element(p, run[k], i + k == 0));
    }
  }
}

template <class Op>
__device__ void scan_lines(const ScanLines& p) {
  using C = typename Op::Element;
  each_line_part(p, [&](const LinePart& at, int64_t task) {
    C total = at.part == 0 ? Op::identity() : static_cast<const C*>(p.joined)[task - p.inner];
    each_element<Op>(p, at, [&](int64_t i, const C& element) {
      total = Op::combine(total, element);
      write(p, at.base + i * p.inner, Op::result(total));
    });
  });
}

/// joined[outer, part, inner] = the combined elements of the part.
template <class Op>
__device__ void join_line_parts(const ScanLines& p) {
  using C = typename Op::Element;
  each_line_part(p, [&](const LinePart& at, int64_t task) {
    C total = Op::identity();
    each_element<Op>(p, at,
                     [&](int64_t, const C& element) { total = Op::combine(total, element); });
    static_cast<C*>(p.joined)[task] = total;
  });
}

/// Inclusive scan over the parts of each line, one warp per line.
template <class Op>
__device__ void carry_joins(const ScanLines& p) {
  using C = typename Op::Element;
  for (int64_t line = WarpRows::first(); line < p.outer * p.inner; line += WarpRows::step()) {
    const int64_t outer = line / p.inner;
    C* const joined = static_cast<C*>(p.joined) + outer * p.parts * p.inner + line % p.inner;
    C carried = Op::identity();
    for (int64_t first = 0; first < p.parts; first += kWarpThreads) {
      const int64_t part = first + lane_index();
      const C own = part < p.parts ? joined[part * p.inner] : Op::identity();
      const WarpScan<Op> scan(own);
      const C through = Op::combine(carried, scan.through);
      if (part < p.parts) joined[part * p.inner] = through;
      carried = last_lane(through);
    }
  }
}

/// Scans a part of a contiguous row with the threads of a block, several adjacent elements per
/// thread at a time: visit(index in the row of the thread's first element, its elements combined
/// one after the other, everything before them in the part). Returns the total.
template <class Op, class Visit>
__device__ typename Op::Element scan_part_of_row(const ScanLines& p, const LinePart& at,
                                                 const Visit& visit) {
  using C = typename Op::Element;
  constexpr int64_t kTile = int64_t{kScanThreads} * kScanEach;
  C carried = Op::identity();
  for (int64_t tile = at.first; tile < at.last; tile += kTile) {
    const int64_t first = tile + int64_t{threadIdx.x} * kScanEach;
    typename Op::Bits run[kScanEach];
#pragma unroll
    for (int k = 0; k < kScanEach; ++k) {
      if (first + k < at.last) run[k] = Op::load(p, at.base + first + k);
    }
    C values[kScanEach];
    C total = Op::identity();
#pragma unroll
    for (int k = 0; k < kScanEach; ++k) {
      if (first + k < at.last) {
        total = Op::combine(total, Op::element(p, run[k], first + k == 0));
      }
      values[k] = total;
    }
    const BlockScan<Op> scan(total);
    visit(first, values, Op::combine(carried, scan.before));
    carried = Op::combine(carried, scan.all);
  }
  return carried;
}

__device__ LinePart part_of_row(const ScanLines& p, int64_t task) {
  const int64_t row = task / p.parts;
  return {p, row, task - row * p.parts, 0};
}

/// joined[row, part] = the combined elements of the part; one block each.
template <class Op>
__device__ void join_row_parts(const ScanLines& p) {
  using C = typename Op::Element;
  for (int64_t task = blockIdx.x; task < p.outer * p.parts; task += gridDim.x) {
    const C total =
        scan_part_of_row<Op>(p, part_of_row(p, task), [](int64_t, const C*, const C&) {});
    if (threadIdx.x == 0) static_cast<C*>(p.joined)[task] = total;
  }
}

/// Contiguous lines: one block scans each part.
template <class Op>
__device__ void scan_rows(const ScanLines& p) {
  using C = typename Op::Element;
  for (int64_t task = blockIdx.x; task < p.outer * p.parts; task += gridDim.x) {
    const LinePart at = part_of_row(p, task);
    const C begun = at.part == 0 ? Op::identity() : static_cast<const C*>(p.joined)[task - 1];
    scan_part_of_row<Op>(p, at, [&](int64_t first, const C* values, const C& in_part) {
      const C before = Op::combine(begun, in_part);
#pragma unroll
      for (int k = 0; k < kScanEach; ++k) {
        if (first + k < at.last) {
          write(p, at.base + first + k, Op::result(Op::combine(before, values[k])));
        }
      }
    });
  }
}

}  // namespace

#define LS_SCAN_KERNEL(Name, ...) \
  LS_CUDA_KERNEL(Name, ScanLines, kScanThreads) { __VA_ARGS__(p); }
#define LS_SCAN(Name, ...)                                               \
  LS_SCAN_KERNEL(scan_##Name##_lines, scan_lines<__VA_ARGS__>)           \
  LS_SCAN_KERNEL(scan_##Name##_line_parts, join_line_parts<__VA_ARGS__>) \
  LS_SCAN_KERNEL(scan_##Name##_rows, scan_rows<__VA_ARGS__>)             \
  LS_SCAN_KERNEL(scan_##Name##_row_parts, join_row_parts<__VA_ARGS__>)   \
  LS_SCAN_KERNEL(scan_##Name##_carry, carry_joins<__VA_ARGS__>)
LS_SCAN(sum_floating, ScanOf<SumOf<double>>)
LS_SCAN(sum_int, ScanOf<SumOf<uint64_t>>)
LS_SCAN(product_floating, ScanOf<ProductOf<double>>)
LS_SCAN(product_int, ScanOf<ProductOf<uint64_t>>)
LS_SCAN(logsum, ScanOf<LogSum>)
LS_SCAN(recurrence, Recurrence)

}  // namespace lockstep::cuda
