#pragma once

#include <cstdint>

#include "kernels/cuda/index/index_list.h"

namespace lockstep::cuda {

// What the kernels of loss.cu are launched with. Targets that are ignored or out of range stand for
// no class: their rows cost nothing. Elements of T are of the scores' dtype; C is f64 where that is
// f64, else f32.

/// A block for each row: log(sum of exp(x)), and what is missing there to the target's score.
struct CrossEntropyRows {
  IndexList targets;
  const void* x;
  void* logsumexp;  ///< C of each row
  void* losses;     ///< C of each row; null where `each` is wanted
  void* each;       ///< T of each row
  int64_t rows;
  int64_t classes;
};

/// One block: the rows' losses added up.
struct CrossEntropyTotal {
  IndexList targets;
  const void* losses;  ///< C of each row
  void* out;           ///< one T
  int64_t rows;
  bool is_mean;  ///< over the rows that have a target
};

/// One block: the number of rows that have a target.
struct UsedTargets {
  IndexList targets;
  int64_t* used;
};

struct CrossEntropyBackward {
  IndexList targets;
  const void* x;
  const void* logsumexp;  ///< C of each row
  const void* grads;      ///< T, of each row or one
  const int64_t* used;    ///< what the loss was divided by; null for 1
  void* out;
  int64_t rows;
  int64_t classes;
  bool grad_of_each;
};

/// One block.
struct NllLoss {
  IndexList targets;
  const void* x;
  const void* weight;  ///< of each class; null for 1
  void* out;           ///< of each row, or one
  void* total_weight;
  int64_t rows;
  int64_t classes;
  bool is_each;
  bool is_mean;
  bool clears_total;  ///< what ATen leaves there where nothing is joined
};

struct NllLossBackward {
  IndexList targets;
  const void* weight;
  const void* grads;         ///< of each row, or one
  const void* total_weight;  ///< what the loss was divided by; null for 1
  void* out;
  int64_t rows;
  int64_t classes;
  bool grad_of_each;
};

inline constexpr int kTotalThreads = 1024;

}  // namespace lockstep::cuda
