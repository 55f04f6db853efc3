#pragma once

#include <cstdint>

#include "core/cuda/fault.h"

namespace lockstep::cuda {

/// Elements per block: equal to kNormBlock of core/ops/optimizer/optimizer.h.
inline constexpr int64_t kOptimizerPart = 4096;

/// The tensors of one launch, at most kMost, with one block per part. `Tensor` has the number of
/// its elements (`count`) and the index of its first part in the launch (`first_part`).
template <class Tensor, uint32_t kMost>
struct PartList {
  static constexpr uint32_t kMostTensors = kMost;

  uint32_t tensors;
  uint32_t parts;
  Tensor list[kMost];
};

/// A parameter with its gradient, optimizer states, and cast (may be null).
struct OptimizerTensor {
  void* parameter;
  const void* gradient;
  void* state[2];
  void* cast;
  int64_t count;
  uint32_t first_part;
  uint32_t decays;  ///< 1 if weight decay applies, else 0
};

/// Run-time inputs of a step: `grad_scale`, and numbers on the device, which may be null
/// (core/ops/optimizer/optimizer.h).
struct StepControl {
  double grad_scale;
  const double* grad_factor;
  const double* lr_factor;
  const float* found_inf;
  const double* step;
  Fault* fault;  ///< used if `step` is not null
};

template <class Factors>
struct OptimizerStep {
  Factors factors;
  StepControl control;
  uint32_t casts_to_bf16;  ///< 1: casts are bf16, 0: f16
  PartList<OptimizerTensor, 68> over;
};

/// Factors of a step, the same for all elements, except the gradient factor and those that depend
/// on the step count or the learning rate. Arrays of two are indexed by whether weight decay
/// applies.
template <class T>
struct AdamWFactors {
  double lr, beta1, beta2, weight_decay;
  T first, second, second_new, eps;
};
template <class T>
struct SgdFactors {
  double lr;
  T momentum;
  T of_gradient, of_buffer;  ///< weights in the update: 1, momentum (Nesterov); else 0, 1
  T decay[2];
  bool has_momentum;
};

template <class T>
struct LionFactors {
  double lr, weight_decay;
  T first, first_new, second, second_new;
};

/// A tensor and the destination of its parts' sums of squares.
struct SquaredTensor {
  const void* x;
  double* out;
  int64_t count;
  uint32_t first_part;
};
struct BlockSquareSums {
  PartList<SquaredTensor, 120> over;
};

/// Elements that one thread adds, and such runs for each block.
inline constexpr int kOrderedRun = 256;
inline constexpr int kOrderedRuns = 16;
/// One level of an ordered sum: `out` has the sum of each run of `x`.
struct OrderedSum {
  const void* x;
  double* out;
  int64_t count;
};

}  // namespace lockstep::cuda
