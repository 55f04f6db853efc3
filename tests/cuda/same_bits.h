#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/cuda/agreement.h"
#include "tests/cuda/gpu.h"

namespace lockstep {

inline void expect_equal_bits(const Tensor& got, const Tensor& want) {
  ASSERT_TRUE(same(got.sizes(), want.sizes())) << got.shape() << " and " << want.shape();
  ASSERT_EQ(got.dtype(), want.dtype());
  const Tensor a = got.to(kCPU).contiguous(), b = want.to(kCPU).contiguous();
  EXPECT_TRUE(b.numel() == 0 || std::memcmp(a.data(), b.data(), b.nbytes()) == 0);
}

/// Expects `compute` to give the same bits on cuda:0 as on the CPU.
inline void expect_same_bits(const std::vector<Tensor>& arguments, const Compute& compute) {
  std::vector<Tensor> moved;
  for (const Tensor& argument : arguments) moved.push_back(argument.to(kGpu));
  const std::vector<Tensor> got = compute(moved), want = compute(arguments);
  for (size_t i = 0; i < want.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    EXPECT_EQ(got[i].device(), kGpu);
    expect_equal_bits(got[i], want[i]);
  }
}

/// Numbers in [0, limit), of which every fourth is the same.
inline Tensor repeated_indices(IntList sizes, int64_t limit, uint64_t seed = 5) {
  Generator generator(seed);
  const Tensor drawn = randint(0, limit, sizes, {}, &generator);
  int64_t* const data = drawn.data<int64_t>();
  for (int64_t i = 0; i < drawn.numel(); i += 4) data[i] = limit / 2;
  return drawn;
}

}  // namespace lockstep
