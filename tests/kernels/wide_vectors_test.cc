// Loops for wide vectors give the bits of those for the baseline.

#include "kernels/cpu/wide_vectors.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cpu/strided_loop.h"
#include "kernels/functors.h"

namespace lockstep::cpu {
namespace {

/// Numbers of every size and sign, specials among them; a length that is no multiple of a vector.
std::vector<float> numbers() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0F, -0.0F, kInfinity, -kInfinity, std::nanf(""), 1e-45F, -1e-39F};
  for (uint32_t i = 0; i < 4099; ++i) {
    const uint32_t mixed = i * 2654435761U;
    x.push_back(std::ldexp(static_cast<float>(mixed % 2000) / 1000 - 1,
                           static_cast<int>(mixed >> 20) % 24 - 12));
  }
  return x;
}

std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> result;
  for (const float value : values) result.push_back(std::bit_cast<uint32_t>(value));
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
}

TEST_F(WideVectors, ChangeNoBitOfADerivative) {
  const std::vector<float> x = numbers();
  const std::vector<float> grad(x.rbegin(), x.rend());
  expect_same_bits<functors::GeluBackward>("gelu", grad, x);
  expect_same_bits<functors::GeluTanhBackward>("gelu, tanh", grad, x);
  expect_same_bits<functors::SiluBackward>("silu", grad, x);
}

}  // namespace
}  // namespace lockstep::cpu
