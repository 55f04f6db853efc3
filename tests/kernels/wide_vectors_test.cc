// Loops compiled for wide vectors give the same bits as those for the baseline.

#include "kernels/cpu/wide_vectors.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/common/functors.h"
#include "kernels/cpu/row_lanes.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/pointwise/activation.h"
#include "kernels/pointwise/unary.h"
#include "tests/core/non_finite.h"

namespace lockstep::cpu {
namespace {

/// Numbers of many magnitudes, with special values; the count is no multiple of a vector's length.
std::vector<float> numbers() {
  std::vector<float> x = {0.0F, -0.0F, kInfinityF32, -kInfinityF32, std::nanf(""), 1e-45F, -1e-39F};
  for (uint32_t i = 0; i < 4099; ++i) {
    const uint32_t mixed = i * 2654435761U;
    x.push_back(std::ldexp(static_cast<float>(mixed % 2000) / 1000 - 1,
                           static_cast<int>(mixed >> 20) % 24 - 12));
  }
  return x;
}

/// Maps all NaNs to one: which operand's NaN propagates depends on the compiler.
std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> result;
  for (const float value : values) {
    result.push_back(std::bit_cast<uint32_t>(std::isnan(value) ? kNaNF32 : value));
  }
  return result;
}

template <class F, class... A>
void expect_same_bits(const char* name, const std::vector<A>&... inputs) {
  const std::vector<float>& first = std::get<0>(std::tie(inputs...));
  const void* const in[] = {inputs.data()...};
  const F functor{};
  std::vector<float> narrow(first.size()), wide(first.size());
  const auto n = static_cast<int64_t>(first.size());
  detail::inner_loop<F, float, A...>(n, narrow.data(), in, &functor);
  detail::wide_inner_loop<F, float, A...>(n, wide.data(), in, &functor);
  EXPECT_EQ(bits(narrow), bits(wide)) << name;
}

class WideVectors : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_wide_vectors()) GTEST_SKIP() << "this processor has none, or this build uses none";
  }
};

TEST_F(WideVectors, ChangeNoBitOfAFunction) {
  const std::vector<float> x = numbers();
  expect_same_bits<functors::Exp>("exp", x);
  expect_same_bits<functors::Log>("log", x);
  expect_same_bits<functors::Tanh>("tanh", x);
  expect_same_bits<functors::Sigmoid>("sigmoid", x);
  expect_same_bits<functors::Silu>("silu", x);
  expect_same_bits<functors::Gelu>("gelu", x);
  expect_same_bits<functors::GeluTanh>("gelu, tanh", x);
  expect_same_bits<functors::GeluBF16>("gelu of bf16", x);
}

TEST_F(WideVectors, ChangeNoBitOfADerivative) {
  const std::vector<float> x = numbers();
  const std::vector<float> grad(x.rbegin(), x.rend());
  expect_same_bits<functors::GeluBackward>("gelu", grad, x);
  expect_same_bits<functors::GeluTanhBackward>("gelu, tanh", grad, x);
  expect_same_bits<functors::SiluBackward>("silu", grad, x);
}

template <class Op, class T>
double joined(const std::vector<T>& x, bool wide) {
  const auto n = static_cast<int64_t>(x.size());
  return static_cast<double>(wide ? join_row<Op, true>(x.data(), n) : join_row<Op>(x.data(), n));
}
template <class T>
double row_sum(const std::vector<T>& x, bool wide) {
  return joined<SumOf<T>>(x, wide);
}

TEST_F(WideVectors, ChangeNoBitOfASum) {
  const std::vector<float> all = numbers();
  for (size_t n = 0; n < all.size(); n += n < 200 ? 1 : 251) {
    std::vector<float> x;
    std::vector<double> doubles;
    std::vector<int64_t> integers;
    std::vector<BFloat16> halves;
    for (size_t i = 0; i < n; ++i) {
      const float number = all[all.size() - 1 - i];  // from the end: specials come first
      x.push_back(number);
      doubles.push_back(number);
      integers.push_back(static_cast<int64_t>(number * 1e3F));
      halves.push_back(BFloat16(number));
    }
    EXPECT_EQ(row_sum(x, true), row_sum(x, false)) << n;
    EXPECT_EQ(row_sum(doubles, true), row_sum(doubles, false)) << n;
    EXPECT_EQ(row_sum(integers, true), row_sum(integers, false)) << n;
    LaneAccumulator<SumOf<float>> narrow, wide, of_floats;
    narrow.add(halves.data(), static_cast<int64_t>(n));
    wide.add<true>(halves.data(), static_cast<int64_t>(n));
    const std::vector<float> converted(halves.begin(), halves.end());
    of_floats.add(converted.data(), static_cast<int64_t>(n));
    EXPECT_EQ(wide.total(), narrow.total()) << n;
    EXPECT_EQ(wide.total(), of_floats.total()) << n;
  }
}

template <class Op>
void expect_same_join(const std::vector<typename Op::Element>& x) {
  const auto bits = [&](bool wide) { return std::bit_cast<uint64_t>(joined<Op>(x, wide)); };
  EXPECT_EQ(bits(true), bits(false)) << x.size();
}

TEST_F(WideVectors, ChangeNoBitOfTheLargestTheSmallestAndAProduct) {
  const std::vector<float> all = numbers();
  for (size_t n = 1; n < all.size(); n += n < 200 ? 1 : 251) {
    // Only the longest input contains NaN, infinities and zeros of both signs.
    const std::vector<float> x(all.rbegin(), all.rbegin() + static_cast<int64_t>(n));
    expect_same_join<LargestOf<float>>(x);
    expect_same_join<SmallestOf<float>>(x);
    expect_same_join<ProductOf<float>>(x);
    const std::vector<int64_t> integers(x.begin(), x.end());
    expect_same_join<LargestOf<int64_t>>(integers);
    expect_same_join<SmallestOf<int64_t>>(integers);
  }
  for (size_t first = 0; first < 7; ++first) {
    const std::vector<float> x(all.begin() + static_cast<int64_t>(first), all.end());
    expect_same_join<LargestOf<float>>(x);
    expect_same_join<SmallestOf<float>>(x);
  }
}

}  // namespace
}  // namespace lockstep::cpu
