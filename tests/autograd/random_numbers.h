#pragma once

#include <gtest/gtest.h>

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/generator.h"
#include "core/tensor/tensor.h"

namespace lockstep {

// Random arguments of function transforms, and the comparison of what two ways of computing return.

/// Normally distributed numbers that `seed` determines.
inline Tensor numbers(IntList sizes, uint64_t seed, DType dtype = DType::kF32) {
  Generator generator(seed);
  return randn(sizes, dtype, &generator);
}

/// Expects the same shape and dtype, and elements that differ by at most `tolerance` times (1 + the
/// largest magnitude in `want`).
inline void expect_close(const Tensor& got, const Tensor& want, double tolerance = 1e-5) {
  ASSERT_TRUE(same(got.sizes(), want.sizes())) << got.shape() << " and " << want.shape();
  ASSERT_EQ(got.dtype(), want.dtype());
  if (want.numel() == 0) return;
  const double apart = max(abs(sub(got, want))).item<double>();
  EXPECT_LE(apart, tolerance * (1 + max(abs(want)).item<double>()));
}

}  // namespace lockstep
