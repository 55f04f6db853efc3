#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/factory/factory.h"
#include "core/ops/random/random.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// Normally distributed elements, fixed by the seed.
inline Tensor random_tensor(IntList sizes, DType dtype = DType::kF32, uint64_t seed = 1) {
  Generator generator(seed);
  const Tensor drawn = randn(sizes, {}, &generator);
  return dtype == DType::kF32 ? drawn : drawn.to(dtype);
}

/// Normally distributed elements that require a gradient; f64 is for comparison with differences.
inline Tensor leaf(IntList sizes, uint64_t seed = 1, DType dtype = DType::kF64) {
  return random_tensor(sizes, dtype, seed).set_requires_grad();
}

/// 0, 1, 2, ... in row-major order.
inline Tensor counting(IntList sizes, DType dtype = DType::kF32) {
  return arange(count_elements(sizes), dtype).view(sizes);
}

using Numbers = std::vector<double>;

/// A vector with these elements.
inline Tensor tensor_of(const Numbers& numbers, DType dtype = DType::kF32) {
  return tensor_from(numbers, {static_cast<int64_t>(numbers.size())}).to(dtype);
}

/// The elements in row-major order, as doubles.
inline Numbers values(const Tensor& tensor) {
  const Tensor wide = tensor.to(DType::kF64).contiguous();
  return {wide.data<double>(), wide.data<double>() + wide.numel()};
}

/// Expects the same shape and every element within absolute + relative * |wanted|. NaN equals NaN.
inline void expect_near(const Tensor& got, const Tensor& wanted, double absolute, double relative) {
  ASSERT_TRUE(same(got.sizes(), wanted.sizes())) << got.shape() << " and " << wanted.shape();
  const std::vector<double> a = values(got), b = values(wanted);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    EXPECT_LE(std::abs(a[i] - b[i]), absolute + relative * std::abs(b[i]))
        << "element " << i << ": " << a[i] << " and " << b[i];
    if (testing::Test::HasFailure()) return;
  }
}

/// Expects these elements; NaN equals NaN.
inline void expect_values(const Tensor& got, const Numbers& wanted) {
  expect_near(got, tensor_of(wanted, DType::kF64), 0, 0);
}

/// Expects results of `compute` with the same bits for 1, 2, 3 and 4 threads.
inline void expect_same_bits_for_any_threads(const std::function<std::vector<Tensor>()>& compute) {
  const int before = num_threads();
  set_num_threads(1);
  const std::vector<Tensor> wanted = compute();
  for (const int threads : {2, 3, 4}) {
    set_num_threads(threads);
    const std::vector<Tensor> got = compute();
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(got[i].nbytes(), wanted[i].nbytes());
      EXPECT_EQ(std::memcmp(got[i].data(), wanted[i].data(), got[i].nbytes()), 0)
          << "result " << i << " with " << threads << " threads";
    }
  }
  set_num_threads(before);
}

}  // namespace lockstep
