#pragma once

#include "tests/ops/op_samples.h"

namespace lockstep {

inline constexpr DType kBF16 = DType::kBF16;

/// `floats` of two arguments, for functions that take a maker of elements.
inline Tensor any_float(IntList sizes, int seed) { return floats(sizes, seed); }

/// Floats in (-1, 1), away from 0, from each other and from both ends.
inline Tensor fractions(IntList sizes, int seed) {
  return map_floats(floats(sizes, seed), [](double x) { return x / 2.2; });
}
/// Floats in (1.2, 3.2).
inline Tensor above_one(IntList sizes, int seed) {
  return map_floats(positives(sizes, seed), [](double x) { return x + 0.7; });
}
/// Floats in (0.05, 0.95).
inline Tensor probabilities(IntList sizes, int seed = 1) {
  return map_floats(floats(sizes, seed), [](double x) { return 0.5 + x / 4.3; });
}

/// Samples of operators that take one tensor, with the elements of `make(sizes, seed)`.
inline OpSamples unary(Tensor (*make)(IntList, int)) {
  return {.calls = {call("matrix", make({3, 5}, 1)), call("0-d", make({}, 1)),
                    call("empty", make({2, 0}, 1)), call("three dimensions", make({2, 3, 4}, 2)),
                    call("transposed", with_gaps(make({4, 3}, 3)))},
          .large = {call("large", make(large_sizes(), 1))}};
}

}  // namespace lockstep
