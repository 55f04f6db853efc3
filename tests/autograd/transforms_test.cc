#include "autograd/transforms.h"

#include <gtest/gtest.h>

#include "autograd/grad_mode.h"
#include "autograd/vmap.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "tests/autograd/random_numbers.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

Tensor doubles(IntList sizes, uint64_t seed) { return numbers(sizes, seed, DType::kF64); }

void expect_precise(const Tensor& got, const Tensor& want) { expect_close(got, want, 1e-10); }

const auto cube = [](const Tensor& x) { return x * x * x; };
const auto sum_of_cubes = [](const Tensor& x) { return sum(x * x * x); };

TEST(Grad, GivesTheGradientOfTheFirstInput) {
  const Tensor x = doubles({4}, 1);
  const Tensor y = doubles({4}, 2);
  const auto product = [](const Tensor& x, const Tensor& y) { return sum(x * x * y); };
  expect_precise(grad(product)(x, y), 2 * x * y);
  const std::vector<Tensor> both = grad(product, {1, 0})(x, y);
  expect_precise(both[0], x * x);
  expect_precise(both[1], 2 * x * y);
  const auto [value, slope] = value_and_grad(product)(x, y);
  expect_precise(value, sum(x * x * y));
  expect_precise(slope, 2 * x * y);
  EXPECT_FALSE(value.requires_grad());
  EXPECT_FALSE(slope.requires_grad());
}

TEST(Grad, LeavesItsInputsAlone) {
  const Tensor x = doubles({4}, 1).set_requires_grad();
  grad(sum_of_cubes)(x);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(x.is_leaf());
}

TEST(Grad, OfAGradientIsTheSecondDerivative) {
  const Tensor x = scalar_tensor(1.5, DType::kF64);
  expect_precise(grad(grad(cube))(x), 6 * x);
  expect_precise(grad(grad(grad(cube)))(x), scalar_tensor(6.0, DType::kF64));
}

TEST(Grad, NestedGradientsDoNotMixTheirVariables) {
  const Tensor x = scalar_tensor(3.0, DType::kF64);
  const auto outer = [](const Tensor& x) {
    const auto inner = [&](const Tensor& y) { return x * y * y; };
    return x * grad(inner)(x.detach() * 2);  // x * (2 x y) at y = 6
  };
  expect_precise(grad(outer)(x), 4 * x * 6);
}

TEST(Grad, StaysConnectedToInputsThatRequireGrad) {
  const Tensor x = doubles({3}, 1).set_requires_grad();
  const Tensor slope = grad(sum_of_cubes)(x);
  ASSERT_TRUE(slope.requires_grad());
  sum(slope).backward();
  expect_precise(x.grad(), 6 * x.detach());
  const NoGradGuard guard;
  EXPECT_FALSE(grad(sum_of_cubes)(x).requires_grad());
}

TEST(Grad, CanStayConnectedToWhatTheFunctionReadsOtherwise) {
  const Tensor w = doubles({3}, 1).set_requires_grad();
  const Tensor x = doubles({3}, 2);
  const int64_t first[] = {0};
  const TensorFunction function = [&](TensorList given) { return sum(given[0] * given[0] * w); };
  const auto [value, gradients] = value_and_gradients(function, {x}, first, true);
  expect_precise(grad({sum(gradients[0])}, {w})[0], 2 * x);
}

TEST(Grad, OfWhatAnInputDoesNotReachIsZero) {
  const Tensor x = doubles({3}, 1);
  const Tensor y = doubles({2}, 2);
  const auto ignores = [](const Tensor&, const Tensor& y) { return sum(y); };
  expect_precise(grad(ignores)(x, y), zeros_like(x));
  const auto constant = [&](const Tensor&) { return scalar_tensor(2.0, DType::kF64); };
  expect_precise(grad(constant)(x), zeros_like(x));
  expect_precise(vmap(grad(constant))(doubles({4, 3}, 3)), zeros({4, 3}, DType::kF64));
}

TEST(Grad, RefusesValuesThatAreNoNumberAndInputsThatAreNotThere) {
  const Tensor x = doubles({3}, 1);
  EXPECT_THROWS(grad(cube)(x), AutogradError, "one floating number");
  EXPECT_THROWS(grad([](const Tensor& x) { return argmax(x); })(x), AutogradError,
                "one floating number");
  EXPECT_THROWS(grad(sum_of_cubes, {1})(x), IndexError, "no input 1");
}

TEST(VmapOfGrad, PerSampleGradientsOfAnMlpEqualALoop) {
  const Tensor w1 = doubles({5, 4}, 1), b1 = doubles({5}, 2), w2 = doubles({3, 5}, 3);
  const auto loss = [](const Tensor& w1, const Tensor& b1, const Tensor& w2, const Tensor& x) {
    return sum(square(linear(tanh(linear(x, w1, b1)), w2)));
  };
  const Tensor x = doubles({6, 4}, 4);
  const auto gradients = grad(loss, {0, 1, 2});
  const std::vector<Tensor> got =
      vmap(gradients, {.in_dims = {std::nullopt, std::nullopt, std::nullopt, 0}})(w1, b1, w2, x);
  std::vector<Tensor> want[3];
  for (int64_t i = 0; i < 6; ++i) {
    const std::vector<Tensor> one = gradients(w1, b1, w2, x.select(0, i));
    for (size_t k = 0; k < 3; ++k) want[k].push_back(one[k]);
  }
  for (size_t k = 0; k < 3; ++k) expect_precise(got[k], stack(want[k]));
}

TEST(VmapOfGrad, NestsWithBatchesInsideAndOutside) {
  const Tensor x = doubles({3, 4, 2}, 1);
  expect_precise(vmap(vmap(grad(sum_of_cubes)))(x), 3 * x * x);
  // The gradient of a sum over one batch, vectorized over another batch.
  const auto mean_over_samples = [](const Tensor& rows) { return sum(vmap(sum_of_cubes)(rows)); };
  expect_precise(vmap(grad(mean_over_samples))(x), 3 * x * x);
  expect_precise(grad(mean_over_samples)(x.select(0, 0)), (3 * x * x).select(0, 0));
}

TEST(VmapOfGrad, HessianEqualsFiniteSteps) {
  const auto f = [](const Tensor& x) { return sum(square(x)) * sum(x) + sum(exp(x)); };
  const Tensor x = doubles({4}, 1);
  const auto column = [&](const Tensor& direction) {
    return grad([&](const Tensor& x) { return sum(grad(f)(x) * direction); })(x);
  };
  TensorOptions options;
  options.dtype = DType::kF64;
  const Tensor identity = triu(tril(ones({4, 4}, options)));
  const Tensor hessian = vmap(column)(identity);
  for (int64_t i = 0; i < 4; ++i) {
    const Tensor step = identity.select(0, i) * 1e-5;
    expect_close(hessian.select(0, i), (grad(f)(x + step) - grad(f)(x - step)) / 2e-5, 1e-6);
  }
}

TEST(VmapOfGrad, SeesWhatTheFunctionSharesAsConstant) {
  const Tensor w = doubles({4}, 1).set_requires_grad();
  const Tensor x = doubles({3, 4}, 2);
  const auto f = [&](const Tensor& x) { return sum(x * x * w); };
  const Tensor got = vmap(grad(f))(x);
  expect_precise(got, 2 * x * w.detach());
  EXPECT_FALSE(w.grad().defined());
}

TEST(VmapOfGrad, KeepsGradientsBatchedAtEveryLevel) {
  const Tensor x = doubles({3, 4}, 1);
  const Tensor w = doubles({4}, 2);
  // w is not batched, yet its gradient has one entry per sample.
  const auto f = [](const Tensor& w, const Tensor& x) { return sum(w * x); };
  expect_precise(vmap(grad(f), {.in_dims = {std::nullopt, 0}})(w, x), x);
}

}  // namespace
}  // namespace lockstep
