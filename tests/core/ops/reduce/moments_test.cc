#include <cmath>

#include "autograd/autograd.h"
#include "core/dispatch/call_op.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reduce/reduce_composite.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(StdMean, AreThoseOfStdAndMean) {
  const Tensor x = tensor_of({1, 2, 6, 4, 4, 4}).view({2, 3});
  const auto [deviation, average] = std_mean(x, {1});
  expect_near(deviation, tensor_of({std::sqrt(7.0), 0}), 1e-6, 0);
  expect_values(average, {3, 4});
  const auto [of_columns, average_of_columns] = std_mean(x, {0}, Scalar(0), true);
  EXPECT_EQ(of_columns.shape(), "[1, 3]");
  expect_values(of_columns.reshape({3}), {1.5, 1, 1});
  expect_values(average_of_columns.reshape({3}), {2.5, 3, 5});
  // Without bias by default, in the forms that take a flag as well.
  const std::vector<Tensor> all = call_op_tensors("std_mean", {x});
  expect_near(all[0].reshape({1}), tensor_of({std::sqrt(15.5 / 5)}), 1e-6, 0);
  expect_values(all[1].reshape({1}), {3.5});
  const std::vector<Tensor> biased = call_op_tensors("std_mean", {x, false});
  expect_near(biased[0].reshape({1}), tensor_of({std::sqrt(15.5 / 6)}), 1e-6, 0);
}

TEST(Std, OfEqualElementsHasNoGradient) {
  const Tensor x = tensor_of({4, 4, 4, 1, 2, 3}).view({2, 3}).set_requires_grad();
  const Tensor gradient = grad({std(x, {1}).sum()}, {x})[0];
  expect_values(gradient.reshape({6}), {0, 0, 0, -0.5, 0, 0.5});
}

TEST(Var, WithoutFreedomHasInfiniteSlopesAndNoneAtTheMean) {
  const Tensor x = tensor_of({1, 2, 3}).set_requires_grad();
  const Tensor variance = call_op("var.correction", {x}, {{"correction", 3}});
  EXPECT_EQ(variance.item<double>(), kInfinity);
  expect_values(grad({variance}, {x})[0], {kInfinity, kNaN, kInfinity});
}

}  // namespace
}  // namespace lockstep
