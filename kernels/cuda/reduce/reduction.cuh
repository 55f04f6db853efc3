#pragma once

#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/reduce/reduction.h"
#include "kernels/cuda/rows.cuh"

namespace lockstep::cuda {

// Reductions are written once, as templates over folds. A fold is constructed from the arguments
// and has
//   C       the type in which elements are read,
//   State   the accumulated state, trivially copyable and a multiple of 4 bytes,
//   none()  the state of no elements,
//   add<k>(state, x, first, step)   adds k elements with indices first, first + step, ...,
//   combine(a, b)   (static) merges two states, in either order,
//   store(p, i, state)   writes result i.

/// Element sources: T for elements of type T, or one of
struct AnyDType {};  ///< elements of the run-time dtype,
struct AnyTruth {};  ///< 1 for nonzero elements of the run-time dtype, else 0.

__device__ inline int64_t walk_offset(const WalkAxes& axes, int64_t index) {
  if (axes.rank == 1) return index * axes.strides[0];
  int64_t offset = 0;
#pragma unroll 1
  for (int d = 0; d < axes.rank; ++d) {
    int64_t quotient = 0;
    if (d < axes.rank - 1) {
      quotient = axes.narrow ? axes.dividers[d].quotient(static_cast<uint32_t>(index))
                             : index / axes.sizes[d];
    }
    offset += (index - quotient * axes.sizes[d]) * axes.strides[d];
    index = quotient;
  }
  return offset;
}

/// Whether the walk goes from each element to the next in memory.
__device__ inline bool is_run(const WalkAxes& axes) {
  return axes.rank == 1 && axes.strides[0] == 1;
}

/// The walk through a row, which a kernel of rows knows when it is compiled (RowReduction).
struct OneRun {};
__device__ inline int64_t walk_offset(OneRun, int64_t index) { return index; }
__device__ inline bool is_run(OneRun) { return true; }

// What follows takes for `Params` a Reduction, or a RowReduction, which has the members that it
// reads.

template <class C, class S, class Params>
__device__ inline C read_element(const Params& p, int64_t at) {
  if constexpr (std::is_same_v<S, AnyDType> || std::is_same_v<S, AnyTruth>) {
    using Read = std::conditional_t<std::is_same_v<S, AnyTruth>, bool, C>;
    const char* const bytes = static_cast<const char*>(p.in);
    return static_cast<C>(load_as<Read>(p.dtype, bytes + at * element_size(p.dtype)));
  } else {
    return convert<C>(static_cast<const S*>(p.in)[at]);
  }
}

template <class T, class Result>
__device__ inline void store_result(const Result& to, int64_t i, T value) {
  const int64_t at = walk_offset(to.places, i);
  store_as(to.dtype, static_cast<char*>(to.data) + at * element_size(to.dtype), value);
}

/// A group of a single thread.
struct ThreadRows {
  static constexpr int kThreads = 1;
  __device__ static int thread() { return 0; }
  __device__ static int64_t first() { return grid_thread(); }
  __device__ static int64_t step() { return grid_threads(); }
  template <class Op>
  __device__ static typename Op::Element combine(typename Op::Element value) {
    return value;
  }
};

template <class Fold>
struct JoinStates {
  using Element = typename Fold::State;
  __device__ static Element combine(const Element& a, const Element& b) {
    return Fold::combine(a, b);
  }
};

/// Folds elements [begin, end) of the result whose first element is at `base`.
template <class Fold, class S, class Group, class Params>
__device__ inline typename Fold::State fold_elements(const Fold& fold, const Params& p,
                                                     int64_t base, int64_t begin, int64_t end) {
  using C = typename Fold::C;
  typename Fold::State state = fold.none();
  if constexpr (!std::is_same_v<S, AnyDType> && !std::is_same_v<S, AnyTruth> &&
                Group::kThreads >= kWarpThreads) {
    if (is_run(p.reduced)) {
      const S* const run = static_cast<const S*>(p.in) + base + begin;
      each_pack<S, Group>(run, end - begin, [&](int64_t i, auto width) {
        C x[width.kPack];
        load_pack<width.kPack>(run + i, x);
        fold.template add<width.kPack>(state, x, begin + i, 1);
      });
      return state;
    }
  }
  constexpr int kRun = 4;  // elements loaded before they are added
  constexpr int64_t kStep = Group::kThreads;
  int64_t i = begin + Group::thread();
  for (; i + (kRun - 1) * kStep < end; i += kRun * kStep) {
    C x[kRun];
#pragma unroll
    for (int k = 0; k < kRun; ++k) {
      x[k] = read_element<C, S>(p, base + walk_offset(p.reduced, i + k * kStep));
    }
    fold.template add<kRun>(state, x, i, kStep);
  }
  for (; i < end; i += kStep) {
    const C x = read_element<C, S>(p, base + walk_offset(p.reduced, i));
    fold.template add<1>(state, &x, i, 1);
  }
  return state;
}

template <class Fold>
__device__ inline void finish_part(const Fold& fold, const Reduction& p, int64_t output,
                                   int64_t part, const typename Fold::State& state) {
  if (p.chunks == 1) {
    fold.store(p, output, state);
  } else {
    static_cast<typename Fold::State*>(p.states)[output * p.chunks + part] = state;
  }
}

/// One group of threads per result, or per part of a result.
template <class Fold, class S, class Group>
__device__ inline void reduce_rows(const Reduction& p) {
  const Fold fold(p);
  for (int64_t task = Group::first(); task < p.outputs * p.chunks; task += Group::step()) {
    const int64_t output = p.chunks == 1 ? task : task / p.chunks;
    const int64_t part = task - output * p.chunks;
    const int64_t begin = part * p.chunk;
    const int64_t end = p.chunks == 1 || begin + p.chunk > p.count ? p.count : begin + p.chunk;
    const auto state = Group::template combine<JoinStates<Fold>>(
        fold_elements<Fold, S, Group>(fold, p, walk_offset(p.kept, output), begin, end));
    if (Group::thread() == 0) finish_part(fold, p, output, part, state);
  }
}

/// One block per kCols * 32 columns, or per part of them: adjacent threads process adjacent
/// columns.
template <class Fold, class S, int kCols>
__device__ inline void reduce_columns(const Reduction& p) {
  using C = typename Fold::C;
  using State = typename Fold::State;
  constexpr int kTile = kWarpThreads * kCols;
  constexpr int kRun = 4;
  constexpr int64_t kStep = kReduceRowThreads;
  __shared__ State shared[kReduceRowThreads][kTile];
  const Fold fold(p);
  const int64_t tiles = (p.width + kTile - 1) / kTile;
  const int64_t groups = p.outputs / p.width;
  for (int64_t task = blockIdx.x; task < groups * tiles * p.chunks; task += gridDim.x) {
    const int64_t part = task / (groups * tiles);
    const int64_t group = task / tiles % groups;
    const int64_t first = task % tiles * kTile;
    const int64_t column = first + lane_index() * kCols;
    const int64_t begin = part * p.chunk;
    int64_t end = p.chunks == 1 || begin + p.chunk > p.count ? p.count : begin + p.chunk;
    if (column >= p.width) end = begin;
    const int64_t base = walk_offset(p.kept, group) + column;
    State states[kCols];
#pragma unroll
    for (int c = 0; c < kCols; ++c) states[c] = fold.none();
    const auto read = [&](int64_t row, C* x) {
      const int64_t at = base + walk_offset(p.reduced, row);
      if constexpr (kCols == 1) {
        x[0] = read_element<C, S>(p, at);
      } else {
        load_pack<kCols>(static_cast<const S*>(p.in) + at, x);
      }
    };
    int64_t i = begin + warp_index();
    for (; i + (kRun - 1) * kStep < end; i += kRun * kStep) {
      C x[kRun][kCols];
#pragma unroll
      for (int k = 0; k < kRun; ++k) read(i + k * kStep, x[k]);
#pragma unroll
      for (int c = 0; c < kCols; ++c) {
        C of_column[kRun];
#pragma unroll
        for (int k = 0; k < kRun; ++k) of_column[k] = x[k][c];
        fold.template add<kRun>(states[c], of_column, i, kStep);
      }
    }
    for (; i < end; i += kStep) {
      C x[kCols];
      read(i, x);
#pragma unroll
      for (int c = 0; c < kCols; ++c) fold.template add<1>(states[c], x + c, i, 1);
    }
#pragma unroll
    for (int c = 0; c < kCols; ++c) shared[warp_index()][lane_index() * kCols + c] = states[c];
    __syncthreads();
    for (int c = static_cast<int>(threadIdx.x); c < kTile && first + c < p.width;
         c += kReduceThreads) {
      State state = shared[0][c];
      for (int row = 1; row < kReduceRowThreads; ++row)
        state = Fold::combine(state, shared[row][c]);
      finish_part(fold, p, group * p.width + first + c, part, state);
    }
    __syncthreads();
  }
}

/// One warp per result that was computed in parts.
template <class Fold>
__device__ inline void reduce_parts(const Reduction& p) {
  const Fold fold(p);
  for (int64_t output = WarpRows::first(); output < p.outputs; output += WarpRows::step()) {
    const auto* const parts =
        static_cast<const typename Fold::State*>(p.states) + output * p.chunks;
    typename Fold::State state = fold.none();
    for (int64_t i = lane_index(); i < p.chunks; i += kWarpThreads) {
      state = Fold::combine(state, parts[i]);
    }
    state = warp_join<JoinStates<Fold>>(state);
    if (lane_index() == 0) fold.store(p, output, state);
  }
}

}  // namespace lockstep::cuda

// Kernels of a fold over elements of source S: Name_thread, _warp, _block, _columns and _parts.
// LS_PACKED_REDUCTION also defines _columns_packed, where kCols elements are 16 bytes.
#define LS_REDUCTION_ENTRY(Name, ...)                                                   \
  LS_CUDA_KERNEL(Name, ::lockstep::cuda::Reduction, ::lockstep::cuda::kReduceThreads) { \
    __VA_ARGS__(p);                                                                     \
  }
#define LS_REDUCTION(Name, Fold, S)                                                     \
  LS_REDUCTION_ENTRY(Name##_thread, reduce_rows<Fold, S, ::lockstep::cuda::ThreadRows>) \
  LS_REDUCTION_ENTRY(Name##_warp, reduce_rows<Fold, S, ::lockstep::cuda::WarpRows>)     \
  LS_REDUCTION_ENTRY(Name##_block, reduce_rows<Fold, S, ::lockstep::cuda::BlockRows>)   \
  LS_REDUCTION_ENTRY(Name##_columns, reduce_columns<Fold, S, 1>)                        \
  LS_REDUCTION_ENTRY(Name##_parts, reduce_parts<Fold>)
#define LS_PACKED_REDUCTION(Name, Fold, S, kCols) \
  LS_REDUCTION(Name, Fold, S)                     \
  LS_REDUCTION_ENTRY(Name##_columns_packed, reduce_columns<Fold, S, kCols>)
