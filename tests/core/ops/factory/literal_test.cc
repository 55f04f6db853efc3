#include "core/ops/factory/literal.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"
#include "core/ops/factory/copy.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

template <class T>
std::vector<T> values(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.data<T>() + tensor.numel()};
}

TEST(Literal, BracesAreDimensions) {
  EXPECT_EQ(tensor(3).shape(), "[]");
  EXPECT_EQ(tensor({3}).shape(), "[1]");
  EXPECT_EQ(tensor({{3}}).shape(), "[1, 1]");
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(x.shape(), "[2, 3]");
  EXPECT_EQ(values<int64_t>(x), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensor({{{1}, {2}}}).shape(), "[1, 2, 1]");
  EXPECT_EQ(tensor({}).shape(), "[0]");
  EXPECT_EQ(tensor({{}, {}}).shape(), "[2, 0]");
}

TEST(Literal, TheKindOfTheNumbersIsTheDtype) {
  EXPECT_EQ(tensor({1, 2}).dtype(), DType::kI64);
  EXPECT_EQ(tensor({1, 2.5}).dtype(), DType::kF32);
  EXPECT_EQ(tensor({true, false}).dtype(), DType::kBool);
  EXPECT_EQ(tensor({true, 2}).dtype(), DType::kI64);
  EXPECT_EQ(tensor({}).dtype(), DType::kF32);
  EXPECT_EQ(values<float>(tensor({1, 2.5})), (std::vector<float>{1, 2.5}));
}

TEST(Literal, IntegersKeepAllTheirBits) {
  constexpr int64_t kLarge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(values<int64_t>(tensor({kLarge, -kLarge})), (std::vector<int64_t>{kLarge, -kLarge}));
}

TEST(Literal, OptionsAreFollowed) {
  const Tensor x = tensor({1, 2}, DType::kF64);
  EXPECT_EQ(values<double>(x), (std::vector<double>{1, 2}));
  TensorOptions options;
  options.requires_grad = true;
  EXPECT_TRUE(tensor({1.0}, options).requires_grad());
  EXPECT_TRUE(tensor({1.0}, options).is_leaf());
  EXPECT_EQ(tensor(std::vector<float>{1, 2}).dtype(), DType::kF32);
  EXPECT_EQ(tensor(std::vector<int32_t>{1, 2}, DType::kF64).dtype(), DType::kF64);
}

TEST(Literal, RowsOfDifferentLengthAreRefused) {
  expect_error<ShapeError>([] { tensor({{1, 2}, {3}}); }, "expected [2]", "got [1] in row 1");
  expect_error<ShapeError>([] { tensor({{1, 2}, 3}); }, "expected [2]", "got []");
}

TEST(Literal, ANumberThatTheDtypeCannotHoldIsRefused) {
  EXPECT_THROW(tensor({1, 300}, DType::kU8), DTypeError);
  EXPECT_THROW(tensor({1e39}), DTypeError);
}

}  // namespace
}  // namespace lockstep
