#include <cmath>
#include <limits>

#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/scan.h"
#include "kernels/joins.h"

namespace lockstep::cuda {

namespace {

/// log(e^a + e^b).
struct LogSum {
  using Element = double;
  __device__ static double identity() { return -std::numeric_limits<double>::infinity(); }
  __device__ static double join(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    const double larger = a > b ? a : b;
    if (std::isinf(larger)) return larger;
    return larger + std::log1p(std::exp(-std::fabs(a - b)));
  }
};

// Floats are joined in f64, integers in uint64, which wraps around.

template <class C>
using StoredAs = std::conditional_t<std::is_same_v<C, double>, double, int64_t>;
template <class C>
__device__ C read(const ScanLines& p, const void* from, int64_t at) {
  return static_cast<C>(load_as<StoredAs<C>>(
      p.dtype, static_cast<const char*>(from) + at * static_cast<int64_t>(size_of(p.dtype))));
}
template <class C>
__device__ void write(const ScanLines& p, int64_t at, C value) {
  store_as(p.dtype, static_cast<char*>(p.y) + at * static_cast<int64_t>(size_of(p.dtype)),
           static_cast<StoredAs<C>>(value));
}

/// visit(offset of the first element) for every line, a thread for each; neighbouring threads take
/// neighbouring lines.
template <class Visit>
__device__ void each_line(const ScanLines& p, const Visit& visit) {
  const int64_t lines = p.outer * p.inner;
  const int64_t step = int64_t{gridDim.x} * kScanThreads;
  for (int64_t line = int64_t{blockIdx.x} * kScanThreads + threadIdx.x; line < lines;
       line += step) {
    const int64_t outer = line / p.inner;
    visit(outer * p.n * p.inner + (line - outer * p.inner));
  }
}

template <class Op>
__device__ void scan_lines(const ScanLines& p) {
  using C = typename Op::Element;
  each_line(p, [&](int64_t base) {
    C total = Op::identity();
    for (int64_t i = 0; i < p.n; ++i) {
      const int64_t at = base + i * p.inner;
      total = Op::join(total, read<C>(p, p.x, at));
      write(p, at, total);
    }
  });
}

__device__ void scan_recurrence(const ScanLines& p) {
  each_line(p, [&](int64_t base) {
    double state = 0;
    for (int64_t i = 0; i < p.n; ++i) {
      const int64_t at = base + i * p.inner;
      // The first state has none before it, whatever its decay.
      state = (i == 0 ? 0.0 : read<double>(p, p.decay, at) * state) + read<double>(p, p.x, at);
      write(p, at, state);
    }
  });
}

/// The joined values of the threads before this one in the block, and of all of them.
template <class Op>
struct BlockScan {
  using C = typename Op::Element;
  C before;
  C all;

  __device__ explicit BlockScan(C value) {
    __shared__ C of_warps[kMostWarps];
    C through = value;
#pragma unroll
    for (int distance = 1; distance < kWarpThreads; distance *= 2) {
      const C lower = __shfl_up_sync(kAllLanes, through, distance);
      if (lane_index() >= distance) through = Op::join(lower, through);
    }
    if (lane_index() == kWarpThreads - 1) of_warps[warp_index()] = through;
    const C lower = __shfl_up_sync(kAllLanes, through, 1);
    before = lane_index() == 0 ? Op::identity() : lower;
    __syncthreads();
    C warps = Op::identity();
    all = Op::identity();
    for (int i = 0; i < warp_count(); ++i) {
      if (i == warp_index()) warps = all;
      all = Op::join(all, of_warps[i]);
    }
    before = Op::join(warps, before);
    __syncthreads();  // the next one writes there again
  }
};

/// A part of a row of memory.
struct RowPart {
  int64_t row;
  int64_t part;
  int64_t first;  ///< elements of the row
  int64_t last;
  __device__ RowPart(const ScanLines& p, int64_t task)
      : row(task / p.parts),
        part(task - row * p.parts),
        first(part * p.part),
        last(first + p.part < p.n ? first + p.part : p.n) {}
};

/// joined[row, part] = the join of the part's elements; a block for each.
template <class Op>
__device__ void join_parts(const ScanLines& p) {
  using C = typename Op::Element;
  for (int64_t task = blockIdx.x; task < p.outer * p.parts; task += gridDim.x) {
    const RowPart at(p, task);
    C total = Op::identity();
    for (int64_t i = at.first + threadIdx.x; i < at.last; i += kScanThreads) {
      total = Op::join(total, read<C>(p, p.x, at.row * p.n + i));
    }
    total = block_join<Op>(total);
    if (threadIdx.x == 0) static_cast<C*>(p.joined)[task] = total;
  }
}

/// Lines that are rows of memory: a block for each part, which goes along it.
template <class Op>
__device__ void scan_rows(const ScanLines& p) {
  using C = typename Op::Element;
  constexpr int64_t kTile = int64_t{kScanThreads} * kScanEach;
  for (int64_t task = blockIdx.x; task < p.outer * p.parts; task += gridDim.x) {
    const RowPart at(p, task);
    const int64_t base = at.row * p.n;
    C carried = at.part == 0 ? Op::identity() : static_cast<const C*>(p.joined)[task - 1];
    for (int64_t tile = at.first; tile < at.last; tile += kTile) {
      const int64_t first = tile + int64_t{threadIdx.x} * kScanEach;
      C values[kScanEach];
      C total = Op::identity();
#pragma unroll
      for (int k = 0; k < kScanEach; ++k) {
        if (first + k < at.last) total = Op::join(total, read<C>(p, p.x, base + first + k));
        values[k] = total;
      }
      const BlockScan<Op> scan(total);
      const C before = Op::join(carried, scan.before);
#pragma unroll
      for (int k = 0; k < kScanEach; ++k) {
        if (first + k < at.last) write(p, base + first + k, Op::join(before, values[k]));
      }
      carried = Op::join(carried, scan.all);
    }
  }
}

}  // namespace

#define LS_SCAN_KERNEL(Name, ...) \
  LS_CUDA_KERNEL(Name, ScanLines, kScanThreads) { __VA_ARGS__(p); }
#define LS_SCAN(Name, ...)                                     \
  LS_SCAN_KERNEL(scan_##Name##_lines, scan_lines<__VA_ARGS__>) \
  LS_SCAN_KERNEL(scan_##Name##_parts, join_parts<__VA_ARGS__>) \
  LS_SCAN_KERNEL(scan_##Name##_rows, scan_rows<__VA_ARGS__>)
LS_SCAN(sum_floating, SumOf<double>)
LS_SCAN(sum_int, SumOf<uint64_t>)
LS_SCAN(product_floating, ProductOf<double>)
LS_SCAN(product_int, ProductOf<uint64_t>)
LS_SCAN(logsum, LogSum)
LS_SCAN_KERNEL(scan_recurrence_lines, scan_recurrence)

}  // namespace lockstep::cuda
