#pragma once

#include "data/token_source.h"

namespace lockstep::train {

/// Reads sequences first, first + 1, ... of `step` into row-major [count, length] buffers.
inline void fill_sequences(const TokenSource& source, int64_t step, int64_t first, int64_t length,
                           std::span<int64_t> inputs, std::span<int64_t> targets) {
  const auto row = static_cast<size_t>(length);
  for (size_t begin = 0; begin + row <= inputs.size(); begin += row) {
    source.sequence(step, first++, inputs.subspan(begin, row), targets.subspan(begin, row));
  }
}

}  // namespace lockstep::train
