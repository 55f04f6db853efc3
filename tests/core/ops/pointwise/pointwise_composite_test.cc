#include "core/ops/pointwise/pointwise_composite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_special.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {
namespace {

TEST(FloatPower, IsComputedInF64) {
  const auto doubles = [](const std::vector<double>& numbers) {
    return tensor_from<double>(numbers, {std::ssize(numbers)});
  };
  const Tensor squares = float_power(tensor_from<int32_t>({3, -2}, {2}), 2);
  EXPECT_EQ(squares.dtype(), DType::kF64);
  EXPECT_TRUE(equal(squares, doubles({9, 4})));
  EXPECT_TRUE(equal(float_power(tensor_from<float>({1e30F}, {1}), 2),
                    doubles({std::pow(double{1e30F}, 2)})));
  EXPECT_TRUE(equal(float_power(2, tensor_from<int64_t>({-1, 3}, {2})), doubles({0.5, 8})));
  EXPECT_TRUE(equal(float_power(tensor_from<float>({2, 3}, {2}), tensor_from<float>({3, 2}, {2})),
                    doubles({8, 9})));
}

TEST(Angles, AreConvertedToDegreesAndBack) {
  const double pi = std::numbers::pi;
  const Tensor radians = tensor_from<double>({pi, -pi / 2}, {2});
  const Tensor degrees = tensor_from<double>({180, -90}, {2});
  EXPECT_LE(max(abs(rad2deg(radians) - degrees)).item<double>(), 1e-13);
  EXPECT_LE(max(abs(deg2rad(degrees) - radians)).item<double>(), 1e-15);
}

}  // namespace
}  // namespace lockstep
