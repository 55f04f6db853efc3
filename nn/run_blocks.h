#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "autograd/checkpoint.h"
#include "core/tensor/tensor.h"

namespace lockstep::nn {

/// Runs blocks 0, 1, ..., count - 1 of a model on `x`: `run(i, x)` returns the result of block i.
/// With `every` above 0, each group of `every` blocks is one activation checkpoint, which keeps
/// only its input for backward; objects that `run` refers to must live until then. 0: no
/// checkpoints.
template <class Run>
Tensor run_blocks(size_t count, int64_t every, Tensor x, const Run& run) {
  if (every <= 0) {
    for (size_t i = 0; i < count; ++i) x = run(i, x);
    return x;
  }
  const size_t step = static_cast<size_t>(every);
  for (size_t first = 0; first < count; first += step) {
    const size_t last = std::min(first + step, count);
    x = checkpoint(
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
