#pragma once

#include <cstdint>

#include "kernels/common/gemm_product.h"

namespace lockstep {

/// The matrix products of one chunk of rows of a fused classifier: logits = input weight^T, and
/// with the logits' gradient in their place, the gradients of input and weight, in f32 for halves.
struct ClassifierChunk {
  DType dtype;        ///< of input, weight and logits
  int64_t rows;       ///< of this chunk
  int64_t width;      ///< columns of input and weight
  int64_t classes;    ///< rows of the weight
  const void* input;  ///< the chunk's first row
  const void* weight;
  void* logits;  ///< [rows, classes], or their gradient times `scale`
  double scale;

  Product product() const;
  /// Written to `gradient`, the chunk's first row of the input's gradient.
  Product input_gradient(void* gradient) const;
  /// Written to the weight's gradient, or added to it.
  Product weight_gradient(void* gradient, bool adds) const;
};

/// The factor of the logits' gradient in `dtype`. The gradient lies in [-1, 1]; in f16 the factor
/// keeps probabilities from 2^-34 upwards, which would end at 2^-24 without it.
constexpr double classifier_scale(DType dtype) { return dtype == DType::kF16 ? 1024 : 1; }

}  // namespace lockstep
