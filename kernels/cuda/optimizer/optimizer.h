#pragma once

#include <cstdint>

#include "core/cuda/fault.h"

namespace lockstep::cuda {

/// Elements that a block updates, or adds up: as kNormBlock of core/ops/optimizer/optimizer.h.
inline constexpr int64_t kOptimizerPart = 4096;

/// The tensors that one launch goes over, kMost of them at most, a block of threads for each part.
/// `Tensor` says its `count` of elements and its `first_part` of the launch's parts, which count
/// through all tensors.
template <class Tensor, uint32_t kMost>
struct PartList {
  static constexpr uint32_t kMostTensors = kMost;

  uint32_t tensors;
  uint32_t parts;
  Tensor list[kMost];
};

/// A parameter and what belongs to it.
struct OptimizerTensor {
  void* parameter;
  const void* gradient;
  void* state[2];
  int64_t count;
  uint32_t first_part;
  uint32_t decays;  ///< 1: weight decay is taken of it, else 0
};

/// What decides on the step beside its factors: `grad_scale` and, where they are not null, numbers
/// on the device (core/ops/optimizer/optimizer.h).
struct StepControl {
  double grad_scale;
  const double* grad_factor;
  const float* found_inf;
  const double* step;
  Fault* fault;  ///< where `step` is not null
};

template <class Factors>
struct OptimizerStep {
  Factors factors;
  StepControl control;
  PartList<OptimizerTensor, 80> over;
};

/// What a step multiplies by, the same for all elements, beside the gradients' factor and what
/// depends on the number of steps. Those of two are without and with weight decay.
template <class T>
struct AdamWFactors {
  double lr, beta1, beta2;
  T first, second, second_new, eps;
  T keep[2];
};
template <class T>
struct SgdFactors {
  T momentum, lr;
  T of_gradient, of_buffer;  ///< what is followed: both with Nesterov's rule, else the buffer
  T decay[2];
  bool has_momentum;
};

/// A tensor and where the sums of squares of its parts go.
struct SquaredTensor {
  const void* x;
  double* out;
  int64_t count;
  uint32_t first_part;
};
struct BlockSquareSums {
  PartList<SquaredTensor, 120> over;
};

/// One block of threads adds `count` elements in their order.
struct OrderedSum {
  const void* x;
  double* out;
  int64_t count;
};

}  // namespace lockstep::cuda
