#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/ops/factory/literal.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_division.h"
#include "core/ops/pointwise/pointwise_logic.h"

namespace lockstep {
namespace {

template <class T = bool>
std::vector<T> values(const Tensor& tensor) {
  return std::vector<T>(tensor.data<T>(), tensor.data<T>() + tensor.numel());
}

TEST(TensorOperators, ComparisonsTakeNumbersOnEitherSide) {
  const Tensor x = tensor({1, 2, 3});
  const Tensor y = tensor({2, 2, 2});
  using Flags = std::vector<bool>;
  EXPECT_EQ(values(x == y), (Flags{false, true, false}));
  EXPECT_EQ(values(x != 2), (Flags{true, false, true}));
  EXPECT_EQ(values(2 == x), values(x == y));
  EXPECT_EQ(values(2 != x), values(x != y));
  EXPECT_EQ(values(x < y), (Flags{true, false, false}));
  EXPECT_EQ(values(x <= 2), (Flags{true, true, false}));
  EXPECT_EQ(values(x > 2), (Flags{false, false, true}));
  EXPECT_EQ(values(x >= y), (Flags{false, true, true}));
  EXPECT_EQ(values(2 < x), (Flags{false, false, true}));
  EXPECT_EQ(values(2 <= x), (Flags{false, true, true}));
  EXPECT_EQ(values(2 > x), (Flags{true, false, false}));
  EXPECT_EQ(values(2 >= x), (Flags{true, true, false}));
}

TEST(TensorOperators, BitsAreCombined) {
  const Tensor x = tensor({1, 2, 3});
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(values<int64_t>(x & 2), (Numbers{0, 2, 2}));
  EXPECT_EQ(values<int64_t>(2 | x), (Numbers{3, 2, 3}));
  EXPECT_EQ(values<int64_t>(x ^ x), (Numbers{0, 0, 0}));
  EXPECT_EQ(values<int64_t>(~x), (Numbers{-2, -3, -4}));
  EXPECT_EQ(values((x > 1) & (x < 3)), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(values(!(x > 1)), (std::vector<bool>{true, false, false}));
}

TEST(TensorOperators, RemaindersHaveTheDivisorsSign) {
  const Tensor x = tensor({-3, 5});
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(values<int64_t>(x % 2), (Numbers{1, 1}));
  EXPECT_EQ(values<int64_t>(7 % tensor({-4, 4})), (Numbers{-1, 3}));
  EXPECT_EQ(values<int64_t>(x % tensor({2, -3})), (Numbers{1, -1}));
}

TEST(TensorOperators, CompoundAssignmentChangesTheTensorItself) {
  const Tensor x = tensor({1.0, 2.0});
  const Tensor same = x;
  x += 1;
  x += tensor({1.0, 1.0});
  x *= 2;
  x *= tensor({1.0, 2.0});
  x -= 2;
  x -= tensor({0.0, 2.0});
  x /= 2;
  x /= tensor({1.0, 3.0});
  EXPECT_EQ(values<float>(same), (std::vector<float>{2, 2}));
  const Tensor integers = tensor({1, 2});
  EXPECT_THROW(integers /= 2, DTypeError);
}

}  // namespace
}  // namespace lockstep
