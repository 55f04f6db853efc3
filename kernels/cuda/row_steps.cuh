#pragma once

#include "kernels/cuda/loop_elements.cuh"
#include "kernels/cuda/loss/softmax_rows.cuh"
#include "kernels/cuda/norm/norm_rows.cuh"
#include "kernels/cuda/reduce/simple_folds.cuh"
#include "kernels/cuda/row_steps.h"

namespace lockstep::cuda {

// How a kernel that is made at run time (row_source.h) computes rows: with the operators' own
// kernels, each on one row. A step takes the results' and operands' elements of the row.

/// Has a kernel for many rows compute the first alone.
template <class Group>
struct OneRow : Group {
  __device__ static int64_t first() { return 0; }
  __device__ static int64_t step() { return 1; }
};

/// Waits for what the other threads of a row wrote.
__device__ inline void meet(WarpRows) { __syncwarp(); }
__device__ inline void meet(BlockRows) { __syncthreads(); }

/// Index of the group in its block.
__device__ inline int group_index(WarpRows) { return warp_index(); }
__device__ inline int group_index(BlockRows) { return 0; }

/// `elements` in shared memory as far behind a multiple of kRowUnit bytes as row `row` of a tensor
/// is that begins at one.
__device__ inline char* row_in(char* elements, int64_t row, int64_t bytes) {
  return elements + row * bytes % kRowUnit;
}

/// What reductions read of Reduction, for one row.
struct RowReduction {
  struct Result {
    void* data;
    DType dtype;
    OneRun places;
  };
  const void* in;
  DType dtype;
  OneRun reduced;
  Result result;
  double number;
};

template <class Fold, class S, class Group>
__device__ inline void fold_step(const FoldStep& step, int64_t n, void* result, const void* row) {
  const RowReduction p{row, step.dtype, {}, {result, step.result, {}}, step.number};
  const Fold fold(p);
  const auto state =
      Group::template combine<JoinStates<Fold>>(fold_elements<Fold, S, Group>(fold, p, 0, 0, n));
  if (Group::thread() == 0) fold.store(p, 0, state);
}

template <class T, class Group, int kPack, int kEach>
__device__ inline void softmax_step(const SoftmaxStep& step, int64_t n, void* y, const void* x) {
  softmax_held<T, OneRow<Group>, kPack, kEach>({y, x, nullptr, 1, n, 1, step.result, step.log});
}
template <class T, class Group, int kPack, int kEach>
__device__ inline void softmax_backward_step(const SoftmaxStep& step, int64_t n, void* dx,
                                             const void* grad, const void* y) {
  softmax_backward_held<T, OneRow<Group>, kPack, kEach>(
      {dx, grad, y, 1, n, 1, step.result, step.log});
}

/// `mean` is null for RMS norm.
template <class T, class Group, int kPack, int kEach>
__device__ inline void norm_step(const NormStep& step, int64_t n, void* y, void* mean, void* rstd,
                                 const void* x, const void* weight, const void* bias) {
  NormRows p{};
  p.x = x;
  p.y = y;
  p.weight = weight;
  p.bias = bias;
  p.mean = {mean, step.mean};
  p.rstd = {rstd, step.rstd};
  p.rows = 1;
  p.n = n;
  p.eps = step.eps;
  p.centre = step.centre;
  norm_held<T, OneRow<Group>, kPack, kEach>(p);
}

}  // namespace lockstep::cuda
