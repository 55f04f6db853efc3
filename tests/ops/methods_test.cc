// Operators as methods, in place and into a destination, as they are written from the declarations.

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "core/ops/forms/matmul.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/forms/reduce.h"
#include "core/ops/loss/loss.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/reduce/reduce.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

Tensor numbers() { return tensor({{1.0, -2.0, 3.0}, {-4.0, 5.0, -6.0}}); }

TEST(OperatorMethods, GiveWhatTheFunctionsGive) {
  const Tensor x = numbers();
  EXPECT_TRUE(equal(x.abs(), abs(x)));
  EXPECT_TRUE(equal(x.softmax(-1), softmax(x, -1)));
  EXPECT_TRUE(equal(x.max(), max(x)));
  EXPECT_TRUE(equal(std::get<1>(x.max(1)), std::get<1>(max(x, 1))));
  EXPECT_TRUE(equal(x.clamp(-1, 2), clamp(x, -1, 2)));
  EXPECT_TRUE(equal(x.add(2), add(x, 2)));
  EXPECT_TRUE(equal(x.addmm(x.mm(x.t()), x), add(x, x.mm(x.t()).mm(x))));
}

TEST(OperatorMethods, TakeDimensionsAsOneNumberAndInBraces) {
  const Tensor x = numbers();
  EXPECT_TRUE(equal(x.sum(1), x.sum({1})));
  EXPECT_EQ(x.sum(1).shape(), "[2]");
  EXPECT_EQ(x.sum({0, 1}).item<double>(), -3);
  EXPECT_EQ(x.sum().item<double>(), -3);
  EXPECT_EQ(x.mean(-1, true).shape(), "[2, 1]");
  EXPECT_EQ(x.sum(DType::kF64).dtype(), DType::kF64);
  const std::vector<int64_t> dims = {0};
  EXPECT_EQ(x.sum(dims).shape(), "[3]");
}

TEST(OperatorMethods, InPlaceOnesChangeTheTensorAndReturnIt) {
  const Tensor x = numbers();
  const Tensor& same = x.abs_();
  EXPECT_TRUE(same.is_same(x));
  EXPECT_TRUE(equal(x, abs(numbers())));
  EXPECT_EQ(x.add_(1).mul_(2).sum().item<double>(), 54);
  EXPECT_TRUE(relu_(x).is_same(x));
}

TEST(OperatorMethods, OutOnesTakeTheDestinationFirst) {
  const Tensor x = numbers();
  const Tensor out = zeros({2});
  EXPECT_TRUE(sum_out(out, x, 1).is_same(out));
  EXPECT_TRUE(equal(out, x.sum(1)));
  const Tensor values = zeros({2});
  const Tensor indices = zeros({2}, DType::kI64);
  max_out(values, indices, x, 1);
  EXPECT_TRUE(equal(values, std::get<0>(x.max(1))));
  EXPECT_TRUE(equal(indices, std::get<1>(x.max(1))));
}

TEST(OperatorMethods, AreRecordedAsFunctionsAre) {
  const Tensor x = numbers();
  x.set_requires_grad();
  x.pow(2).sum().backward();
  EXPECT_TRUE(equal(x.grad(), mul(numbers(), 2)));
}

TEST(OperatorMethods, ErrorsNameTheOperator) {
  expect_error<IndexError>([] { (void)numbers().softmax(5); }, "softmax");
}

}  // namespace
}  // namespace lockstep
