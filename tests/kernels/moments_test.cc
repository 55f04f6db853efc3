// Reductions in kernels/cpu/reduce/moments.cc, and products.

#include "autograd/autograd.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

double only(const Tensor& tensor) { return tensor.item<double>(); }

TEST(Variance, AgreesWithItsDefinitionOverBlocksAndLayouts) {
  for (const Tensor& x : {random_tensor({3, 5000}), random_tensor({5000, 3}).t(),
                          random_tensor({70, 40}), random_tensor({2, 3, 1500}).transpose(0, 1)}) {
    const Tensor wide = x.to(DType::kF64);
    for (int64_t dim = 0; dim < x.dim(); ++dim) {
      const double count = static_cast<double>(x.size(dim));
      const Tensor wanted = sum(square(wide - mean(wide, {dim}, true)), {dim}) / (count - 1);
      expect_near(var(x, {dim}), wanted, 1e-6, 1e-6);
      expect_near(std(x, {dim}), sqrt(wanted), 1e-6, 1e-6);
      expect_near(std::get<1>(var_mean(x, {dim})), mean(wide, {dim}), 1e-6, 1e-6);
    }
  }
}

TEST(Variance, LosesNothingToALargeMean) {
  const Tensor x = random_tensor({4000}).to(DType::kF64);
  EXPECT_NEAR(only(var(x + 1e8)), only(var(x)), 1e-6);
}

TEST(Variance, WithoutDegreesOfFreedomIsNanOrInfinite) {
  EXPECT_TRUE(std::isnan(only(var(ones({1})))));
  EXPECT_TRUE(std::isnan(only(var(ones({0})))));
  EXPECT_EQ(only(var(tensor_from<float>({1, 2}, {2}), {}, 2)), kInfinity);
  EXPECT_EQ(only(var(tensor_from<float>({1, 2}, {2}), {}, 5)), kInfinity);
  EXPECT_NEAR(only(var(tensor_from<float>({1, 2}, {2}), {}, -2)), 0.125, 1e-7);
  EXPECT_THROW(var(ones({2}, {DType::kI64})), DTypeError);
}

TEST(StandardDeviation, OfEqualElementsHasAGradientOfZero) {
  const Tensor x = ones({3}).set_requires_grad();
  std(x).backward();
  expect_near(x.grad(), zeros({3}), 0, 0);
}

TEST(Logsumexp, StaysInRangeAtTheEnds) {
  const auto of = [](std::vector<float> elements) {
    return only(logsumexp(tensor_from(elements, {static_cast<int64_t>(elements.size())}), {0}));
  };
  EXPECT_NEAR(of({1000, 1000}), 1000 + std::log(2), 1e-4);
  EXPECT_NEAR(of({-1000, -1000}), -1000 + std::log(2), 1e-4);
  EXPECT_EQ(of({-INFINITY, -INFINITY}), -kInfinity);
  EXPECT_EQ(of({INFINITY, 1}), kInfinity);
  EXPECT_TRUE(std::isnan(of({NAN, INFINITY})));
  EXPECT_EQ(of({}), -kInfinity);
}

TEST(Logsumexp, JoinsBlocksOfDifferentSize) {
  const Tensor x = random_tensor({5000}) * 50.0;
  const Tensor largest = amax(x);
  const Tensor wide = (x - largest).to(DType::kF64);
  expect_near(logsumexp(x, {0}), log(sum(exp(wide))) + largest.to(DType::kF64), 1e-5, 1e-6);
}

TEST(VectorNorm, KnowsZeroAndInfinitePowers) {
  const Tensor x = tensor_from<float>({0, -3, 4}, {3});
  EXPECT_EQ(only(linalg_vector_norm(x)), 5);
  EXPECT_EQ(only(linalg_vector_norm(x, 0)), 2);
  EXPECT_EQ(only(linalg_vector_norm(x, kInfinity)), 4);
  EXPECT_EQ(only(linalg_vector_norm(x, -kInfinity)), 0);
  EXPECT_TRUE(
      std::isnan(only(linalg_vector_norm(tensor_from<float>({1, NAN, 2}, {3}), kInfinity))));
}

TEST(VectorNorm, OfZerosHasAGradientOfZero) {
  for (const double p : {0.5, 1.0, 1.5, 2.0, 3.0, kInfinity}) {
    const Tensor x = zeros({3}).set_requires_grad();
    linalg_vector_norm(x, p).backward();
    expect_near(x.grad(), zeros({3}), 0, 0);
  }
}

TEST(VectorNorm, RefusesIntegersNarrowingAndChoosingFromNothing) {
  EXPECT_THROW(linalg_vector_norm(ones({2}, {DType::kI64})), DTypeError);
  EXPECT_THROW(linalg_vector_norm(ones({2}), 2, {}, false, DType::kBF16), DTypeError);
  EXPECT_THROW(linalg_vector_norm(ones({0}), kInfinity), IndexError);
  EXPECT_THROW(linalg_vector_norm(ones({0}), -1), IndexError);
  EXPECT_EQ(only(linalg_vector_norm(ones({0}))), 0);
}

TEST(Product, StaysInRangeOnTheWay) {
  // The partial products reach 1e-200 and 1e200, both outside the range of f32.
  const Tensor x = full({40}, 1e10);
  x.slice(0, 20).fill_(1e-10);
  EXPECT_NEAR(only(prod(x)), 1, 1e-3);
  EXPECT_NEAR(only(prod(x.reshape({2, 20}).t().reshape({-1}))), 1, 1e-3);
}

TEST(Product, OfNothingIsOneAndIntegersWiden) {
  EXPECT_EQ(only(prod(ones({0}))), 1);
  const Tensor counts = prod(full({5}, 100, {DType::kU8}));
  EXPECT_EQ(counts.dtype(), DType::kI64);
  EXPECT_EQ(counts.item<int64_t>(), 10000000000);
}

TEST(Product, GivesGradientsPastZeros) {
  const auto gradient = [](std::vector<float> elements) {
    const Tensor x = tensor_from(elements, {3}).set_requires_grad();
    prod(x).backward();
    return x.grad();
  };
  expect_near(gradient({2, 0, 3}), tensor_from<float>({0, 6, 0}, {3}), 0, 0);
  expect_near(gradient({0, 0, 3}), zeros({3}), 0, 0);
}

TEST(Cumprod, GivesGradientsPastZeros) {
  const Tensor x = tensor_from<float>({2, 0, 3}, {3}).set_requires_grad();
  cumprod(x, 0).sum().backward();  // of 2 + 2 x + 6 x at x = 0
  expect_near(x.grad(), tensor_from<float>({1, 8, 0}, {3}), 0, 0);
}

TEST(LinearRecurrence, IgnoresTheFirstDecay) {
  const Tensor decay = tensor_from<float>({NAN, 2, 0.5f}, {3});
  const Tensor input = tensor_from<float>({1, 1, 1}, {3});
  expect_near(linear_recurrence(decay, input, 0), tensor_from<float>({1, 3, 2.5f}, {3}), 0, 0);
}

TEST(Logcumsumexp, IsTheLogarithmOfTheRunningSumWithoutOverflow) {
  const Tensor x = random_tensor({3, 50});
  expect_near(logcumsumexp(x, 1), log(cumsum(exp(x), 1)), 1e-5, 1e-5);
  const Tensor far = tensor_from<double>({-kInfinity, 1000, 1000, kInfinity, 0}, {5});
  const double twice = 1000 + std::log(2.0);
  expect_near(logcumsumexp(far, 0),
              tensor_from<double>({-kInfinity, 1000, twice, kInfinity, kInfinity}, {5}), 0, 1e-15);
}

TEST(Product, OfNumbersAndANaNHasGradientsOfNaN) {
  const Tensor x = tensor_from<float>({2, NAN, 3}, {3}).set_requires_grad();
  prod(x).backward();
  expect_near(x.grad(), full({3}, kNaN), 0, 0);
}

}  // namespace
}  // namespace lockstep
