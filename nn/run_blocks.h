#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "autograd/checkpoint.h"
#include "core/tensor/tensor.h"
#include "nn/recompute.h"

namespace lockstep::nn {

/// Runs blocks 0, 1, ..., count - 1 of a model on `x`: `run(i, x)` returns the result of block i.
/// Unless nothing is to be recomputed, each block, or group of blocks, is one activation checkpoint
/// (autograd/checkpoint.h), and objects that `run` refers to must live until backward.
template <class Run>
Tensor run_blocks(size_t count, const RecomputeOptions& recompute, Tensor x, const Run& run) {
  if (recompute.what == Recompute::kNone) {
    for (size_t i = 0; i < count; ++i) x = run(i, x);
    return x;
  }
  const bool is_cheap = recompute.what == Recompute::kCheap;
  const CheckpointOptions options{.keep_products = is_cheap, .recompute_gelu = recompute.gelu};
  const size_t step = is_cheap ? 1 : static_cast<size_t>(recompute.blocks);
  for (size_t first = 0; first < count; first += step) {
    const size_t last = std::min(first + step, count);
    x = checkpoint(
        options,
        [run, first, last](const Tensor& input) {
          Tensor y = input;
          for (size_t i = first; i < last; ++i) y = run(i, y);
          return y;
        },
        x);
  }
  return x;
}

}  // namespace lockstep::nn
