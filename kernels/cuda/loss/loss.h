#pragma once

#include <cstdint>

#include "kernels/cuda/index/index_list.h"

namespace lockstep::cuda {

// Arguments of the kernels of loss.cu. Targets that are ignored or out of range name no class: the
// loss of their rows is 0. T is the scores' dtype; C is f64 if that is f64, else f32.

/// One block per row: computes log(sum of exp(x)) and its difference to the target's score.
struct CrossEntropyRows {
  IndexList targets;
  const void* x;
  void* logsumexp;  ///< C per row
  void* losses;     ///< C per row; null if `each` is wanted
  void* each;       ///< C per row
  int64_t rows;
  int64_t classes;
};

/// One block: sums the rows' losses.
struct CrossEntropyTotal {
  IndexList targets;
  const void* losses;  ///< C per row
  void* out;           ///< a single C
  int64_t rows;
  bool is_mean;  ///< divide by the number of rows with a target
};

/// One block: counts the rows with a target.
struct UsedTargets {
  IndexList targets;
  int64_t* used;
};

struct CrossEntropyBackward {
  IndexList targets;
  const void* x;
  const void* logsumexp;  ///< C per row
  const void* grads;      ///< C, one per row or a single one; null for 1
  const int64_t* used;    ///< the forward's divisor; null for 1
  void* out;
  int64_t rows;
  int64_t classes;
  bool grad_of_each;
  double scale = 1;  ///< a further factor
};

/// One block per row: computes the row's loss, and replaces its scores by their gradient. Rows
/// start at multiples of 16 bytes; the block's dynamic shared memory holds one.
struct HeldCrossEntropy {
  IndexList targets;
  void* x;
  float* losses;
  int64_t rows;
  int64_t classes;
  int64_t stride;  ///< elements from row to row, a multiple of 16 bytes
  double scale;    ///< of the gradient
};
inline constexpr int kHeldThreads = 512;

/// One block computes the losses and their sum.
struct NllLoss {
  IndexList targets;
  const void* x;
  const void* weight;  ///< one per class; null for 1
  void* out;           ///< one per row, or a single one
  void* total_weight;
  int64_t rows;
  int64_t classes;
  bool is_each;
  bool is_mean;
  bool clears_total;  ///< set total_weight to 0: ATen, 2-d scores without reduction
};

struct NllLossBackward {
  IndexList targets;
  const void* weight;
  const void* grads;         ///< one per row, or a single one
  const void* total_weight;  ///< the forward's divisor; null for 1
  void* out;
  int64_t rows;
  int64_t classes;
  bool grad_of_each;
};

inline constexpr int kTotalThreads = 1024;

}  // namespace lockstep::cuda
