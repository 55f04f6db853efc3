#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "autograd/checkpoint.h"
#include "core/tensor/tensor.h"

namespace lockstep::nn {

/// Sends `x` through blocks 0, 1, ..., count - 1 of a model: `run(i, x)` is what block i makes of
/// it. With `every` above 0, each so many blocks are one activation checkpoint, so that until
/// backward only their input is kept; what `run` captures must live until then. 0: none.
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
