#pragma once

#include <cstdint>

namespace lockstep::cuda {

/// Elements that a block updates.
inline constexpr int64_t kOptimizerPart = 4096;

/// A parameter and what belongs to it.
struct OptimizerTensor {
  void* parameter;
  const void* gradient;
  void* state[2];
  int64_t count;
  uint32_t first_part;  ///< of the launch's parts, which count through all tensors
  uint32_t decays;      ///< 1: weight decay is taken of it, else 0
};

/// What decides on the step beside its factors: `grad_scale` and, where they are not null, two
/// numbers on the device (core/ops/optimizer.h).
struct StepControl {
  double grad_scale;
  const double* grad_factor;
  const float* found_inf;
};

/// One launch updates up to kMost tensors, a block for each part.
template <class Factors>
struct OptimizerStep {
  static constexpr uint32_t kMost = 80;

  Factors factors;
  StepControl control;
  uint32_t tensors;
  uint32_t parts;
  OptimizerTensor list[kMost];
};

/// What a step multiplies by, the same for all elements, beside the gradients' factor. Those of two
/// are without and with weight decay.
template <class T>
struct AdamWFactors {
  T first, second, second_new, step_size, inverse_root, eps;
  T keep[2];
};
template <class T>
struct SgdFactors {
  T momentum, lr;
  T of_gradient, of_buffer;  ///< what is followed: both with Nesterov's rule, else the buffer
  T decay[2];
  bool has_momentum;
};

/// Sums of squares of blocks of kNormBlock elements.
struct BlockSquareSums {
  const void* x;
  double* out;
  int64_t count;  ///< of x
  int64_t blocks;
};

/// One block of threads adds `count` elements in their order.
struct OrderedSum {
  const void* x;
  double* out;
  int64_t count;
};

}  // namespace lockstep::cuda
