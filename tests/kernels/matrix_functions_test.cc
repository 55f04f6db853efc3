#include "core/ops/linalg/matrix_functions.h"

#include <numbers>

#include "core/ops/linalg/solve.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_special.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(MatrixNorm, IsKnownForASmallMatrix) {
  const Tensor a = tensor_from({1.0, -2.0, 3.0, 4.0}, {2, 2});
  EXPECT_EQ(linalg_matrix_norm(a, 1).item<double>(), 6);
  EXPECT_EQ(linalg_matrix_norm(a, -1).item<double>(), 4);
  EXPECT_EQ(linalg_matrix_norm(a, kInfinity).item<double>(), 7);
  EXPECT_EQ(linalg_matrix_norm(a, -kInfinity).item<double>(), 3);
  EXPECT_NEAR(linalg_matrix_norm(a).item<double>(), std::sqrt(30.0), 1e-14);
  // The product of the singular values is |det|, the sum of their squares that of the elements.
  const double largest = linalg_matrix_norm(a, 2).item<double>();
  const double least = linalg_matrix_norm(a, -2).item<double>();
  EXPECT_NEAR(largest * least, 10, 1e-12);
  EXPECT_NEAR(largest * largest + least * least, 30, 1e-12);
  EXPECT_NEAR(linalg_matrix_norm(a, "nuc").item<double>(), largest + least, 1e-12);
}

TEST(MatrixNorm, KeepsDimensionsInTheirPlaces) {
  const Tensor a = random_tensor({2, 3, 4});
  for (const double ord : {1.0, 2.0, kInfinity}) {
    const Tensor wanted = linalg_matrix_norm(a.permute({1, 2, 0}), ord);
    expect_near(linalg_matrix_norm(a, ord, Dims{2, 0}), wanted, 1e-6, 1e-6);
    expect_near(linalg_matrix_norm(a, ord, Dims{-1, 0}, true), wanted.view({1, 3, 1}), 1e-6, 1e-6);
  }
  EXPECT_EQ(linalg_matrix_norm(a, 1, Dims{-2, -1}, false, DType::kF64).dtype(), DType::kF64);
}

TEST(MatrixNorm, RefusesOtherOrdersAndDimensions) {
  const Tensor a = random_tensor({2, 3});
  expect_error<Error>([&] { linalg_matrix_norm(a, 3); }, "[linalg_matrix_norm]", "3");
  expect_error<Error>([&] { linalg_matrix_norm(a, "max"); }, "max");
  expect_error<ShapeError>([&] { linalg_matrix_norm(a, 1, Dims{0, 0}); }, "different");
  expect_error<ShapeError>([&] { linalg_matrix_norm(random_tensor({3}), 1); }, "[3]");
}

TEST(Cond, IsInfiniteForSingularMatrices) {
  const Tensor a = diag_embed(tensor_from({4.0, 2.0}, {2}));
  for (const double p : {1.0, 2.0, kInfinity}) {
    EXPECT_NEAR(linalg_cond(a, p).item<double>(), 2, 1e-12);
    EXPECT_EQ(linalg_cond(zeros({2, 2}) + 1, p == 2 ? 1 : p).item<double>(), kInfinity);
  }
  EXPECT_NEAR(linalg_cond(a, -2).item<double>(), 0.5, 1e-12);
  EXPECT_NEAR(linalg_cond(a, "fro").item<double>(), std::sqrt(20 * (0.0625 + 0.25)), 1e-12);
  expect_values(linalg_cond(zeros({2, 0, 0})), {0, 0});
}

TEST(MatrixPower, IsRepeatedMultiplication) {
  const Tensor a = random_tensor({2, 3, 3}, DType::kF64);
  Tensor wanted = a;
  for (int64_t n = 2; n < 9; ++n) {
    wanted = matmul(wanted, a);
    expect_near(linalg_matrix_power(a, n), wanted, 1e-12, 1e-12);
    if (n > 3) continue;  // the inverse loses digits with each factor
    expect_near(matmul(linalg_matrix_power(a, -n), wanted), diag_embed(ones({2, 3}, DType::kF64)),
                1e-6, 0);
  }
  expect_near(linalg_matrix_power(a, 0), diag_embed(ones({2, 3}, DType::kF64)), 0, 0);
}

TEST(MatrixExp, IsKnownForDiagonalAndRotatingMatrices) {
  const Tensor numbers = tensor_from({-20.0, 0.0, 1.0, 30.0}, {4});
  expect_near(linalg_matrix_exp(diag_embed(numbers)), diag_embed(exp(numbers)), 1e-14, 1e-12);
  const double angle = 100;
  const Tensor turn = linalg_matrix_exp(tensor_from({0.0, -angle, angle, 0.0}, {2, 2}));
  const Tensor wanted =
      tensor_from({std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)}, {2, 2});
  expect_near(turn, wanted, 1e-12, 1e-12);
  EXPECT_TRUE(std::isnan(linalg_matrix_exp(full({1, 1}, kInfinity)).item<double>()));
}

TEST(MultiDot, GivesTheProductInAnyOrder) {
  const Tensor a = random_tensor({20, 2}), b = random_tensor({2, 20}, DType::kF32, 2);
  const Tensor c = random_tensor({20, 3}, DType::kF32, 3), d = random_tensor({3}, DType::kF32, 4);
  expect_near(linalg_multi_dot({a, b, c, d}), matmul(mm(mm(a, b), c), d), 1e-4, 1e-4);
  expect_error<ShapeError>([&] { linalg_multi_dot({a}); }, "at least two");
  expect_error<ShapeError>([&] { linalg_multi_dot({a, c}); }, "inner sizes");
}

TEST(Covariance, IsThatOfTheDefinition) {
  const Tensor x = tensor_from({1.0, 2.0, 4.0, 3.0, 1.0, 2.0}, {2, 3});
  expect_near(cov(x), tensor_from({7.0 / 3, -0.5, -0.5, 1.0}, {2, 2}), 1e-12, 0);
  // An observation with frequency 2 counts as two.
  const Tensor twice = tensor_from({1.0, 2.0, 4.0, 4.0, 3.0, 1.0, 2.0, 2.0}, {2, 4});
  const Tensor often = tensor_from({int64_t{1}, int64_t{1}, int64_t{2}}, {3});
  expect_near(cov(x, 1, often), cov(twice), 1e-12, 0);
  expect_error<DTypeError>([&] { cov(x, 1, tensor_of({1, 1, 2})); }, "fweights");
  expect_error<ShapeError>([&] { cov(x, 1, {}, tensor_of({1, 1})); }, "aweights");
}

TEST(Corrcoef, IsOneForARowWithItself) {
  const Tensor x = random_tensor({3, 9}, DType::kF64);
  const Tensor r = corrcoef(x);
  expect_near(diagonal(r), ones({3}, DType::kF64), 1e-12, 0);
  expect_near(corrcoef(x * 3 + 1), r, 1e-12, 0);
  EXPECT_EQ(corrcoef(x.select(0, 0)).item<double>(), 1);
}

TEST(Mvlgamma, IsASumOfLgamma) {
  const Tensor x = tensor_from({3.0, 4.5}, {2});
  const double pi = 0.5 * std::log(std::numbers::pi);
  expect_near(mvlgamma(x, 2), lgamma(x) + lgamma(x - 0.5) + pi, 1e-12, 0);
  expect_error<Error>([&] { mvlgamma(x, 0); }, "[mvlgamma]");
}

}  // namespace
}  // namespace lockstep
