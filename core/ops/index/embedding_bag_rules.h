#pragma once

#include "core/tensor/outputs.h"

namespace lockstep {

/// Reduction of an embedding bag; the numbers are ATen's.
enum class BagMode : int64_t { kSum, kMean, kMax };

namespace rules {

// Shape rule of core/ops/index/embedding_bag.cc, defined there.

Outputs embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                      bool scale_grad_by_freq, int64_t mode, bool sparse,
                      OptionalTensor per_sample_weights, bool include_last_offset,
                      int64_t padding_idx);

}  // namespace rules
}  // namespace lockstep
