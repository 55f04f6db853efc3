#include "core/ops/linalg/solve.h"

#include <limits>

#include "autograd/gradcheck.h"
#include "core/ops/index/index.h"
#include "core/ops/linalg/factorize.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

Tensor turned(const Tensor& matrices) { return matrices.transpose(-2, -1); }

Tensor invertible(IntList sizes) {
  const Tensor x = random_tensor(sizes, DType::kF64);
  return x + diag_embed(full({x.size(-1)}, 4, DType::kF64));
}

TEST(Solve, SolvesOnBothSidesInABroadcastBatch) {
  const Tensor a = invertible({2, 1, 3, 3}), b = random_tensor({4, 3, 3}, DType::kF64, 2);
  expect_near(matmul(a, linalg_solve(a, b)), b.expand({2, 4, 3, 3}), 1e-12, 1e-12);
  expect_near(matmul(linalg_solve(a, b, false), a), b.expand({2, 4, 3, 3}), 1e-12, 1e-12);
}

TEST(Solve, TakesVectorsByTheirShape) {
  const Tensor a = invertible({2, 3, 3});
  const Tensor one = random_tensor({3}, DType::kF64), each = random_tensor({2, 3}, DType::kF64);
  expect_near(matmul(a, linalg_solve(a, one).unsqueeze(-1)).squeeze(-1), one.expand({2, 3}), 1e-12,
              1e-12);
  expect_near(matmul(a, linalg_solve(a, each).unsqueeze(-1)).squeeze(-1), each, 1e-12, 1e-12);
  // Not the batch sizes of a: a matrix.
  const Tensor matrix = random_tensor({3, 2}, DType::kF64);
  EXPECT_TRUE(same(linalg_solve(a, matrix).sizes(), Dims{2, 3, 2}));
  expect_error<ShapeError>([&] { linalg_solve(a, one, false); }, "left = true");
}

TEST(Solve, NamesTheSingularMatrix) {
  const Tensor a = invertible({3, 2, 2});
  a.select(0, 1).zero_();
  const Tensor b = random_tensor({3, 2, 1}, DType::kF64);
  expect_error<Error>([&] { linalg_solve(a, b); }, "[linalg_solve] matrix 1 of the batch",
                      "singular");
  expect_error<Error>([&] { linalg_inv(a); }, "[linalg_inv] matrix 1 of the batch", "singular");
  expect_values(std::get<1>(linalg_solve_ex(a, b)), {0, 1, 0});
  expect_values(std::get<1>(linalg_inv_ex(a)), {0, 1, 0});
  expect_error<ShapeError>(
      [&] {
        linalg_solve(a, random_tensor({3, 3, 1}, DType::kF64));
      },
      "[linalg_solve]", "[3, 3, 1]");
  expect_error<DTypeError>([&] { linalg_solve(a, random_tensor({3, 2, 1})); }, "float32");
}

TEST(Triangular, DoesNotReadTheOtherTriangle) {
  const Tensor a = invertible({3, 3}), b = random_tensor({3, 2}, DType::kF64, 2);
  const Tensor nan = full({3, 3}, std::numeric_limits<double>::quiet_NaN(), DType::kF64);
  const Tensor below = tril(ones({3, 3}, DType::kBool), -1);
  const Tensor x = linalg_solve_triangular(where(below, nan, a), b, true);
  expect_near(matmul(triu(a), x), b, 1e-12, 1e-12);
  const Tensor diagonal_too = tril(ones({3, 3}, DType::kBool));
  const Tensor y = linalg_solve_triangular(where(diagonal_too, nan, a), b, true, true, true);
  expect_near(matmul(triu(a, 1) + diag_embed(ones({3}, DType::kF64)), y), b, 1e-12, 1e-12);
}

TEST(Triangular, OlderFormTransposes) {
  const Tensor a = invertible({3, 3}), b = random_tensor({2, 3, 2}, DType::kF64, 2);
  const auto [x, coefficient] = triangular_solve(b, a, true, true);
  expect_near(matmul(turned(triu(a)), x), b, 1e-12, 1e-12);
  expect_near(coefficient, a.expand({2, 3, 3}), 0, 0);
}

TEST(Cholesky, SolvesAndInverts) {
  const Tensor root = invertible({2, 3, 3});
  const Tensor a = matmul(root, turned(root)), b = random_tensor({3, 2}, DType::kF64, 2);
  for (const bool upper : {false, true}) {
    const Tensor factor = linalg_cholesky(a, upper);
    expect_near(matmul(a, cholesky_solve(b, factor, upper)), b.expand({2, 3, 2}), 1e-10, 1e-10);
    expect_near(cholesky_inverse(factor, upper), linalg_inv(a), 1e-10, 1e-10);
  }
}

TEST(Cholesky, HasGradientsOfTriangularFactors) {
  for (const bool upper : {false, true}) {
    const auto triangle = [upper](const Tensor& x) { return upper ? triu(x) : tril(x); };
    const Tensor factor = invertible({2, 3, 3}).set_requires_grad(), b = leaf({3, 2}, 2);
    const auto solved = [&](TensorList x) {
      return std::vector<Tensor>{cholesky_solve(x[0], triangle(x[1]), upper)};
    };
    EXPECT_TRUE(gradcheck(solved, {b, factor}));
    EXPECT_TRUE(gradgradcheck(solved, {b, factor}));
    const auto inverted = [&](TensorList x) {
      return std::vector<Tensor>{cholesky_inverse(triangle(x[0]), upper)};
    };
    EXPECT_TRUE(gradcheck(inverted, {factor}));
    EXPECT_TRUE(gradgradcheck(inverted, {factor}));
  }
}

TEST(Determinant, IsKnownForSmallMatrices) {
  const Tensor a = tensor_from({1.0, 2.0, 3.0, 4.0}, {2, 2});
  EXPECT_NEAR(linalg_det(a).item<double>(), -2, 1e-14);
  const auto [sign, logarithm] = linalg_slogdet(a);
  EXPECT_EQ(sign.item<double>(), -1);
  EXPECT_NEAR(logarithm.item<double>(), std::log(2.0), 1e-14);
  EXPECT_TRUE(std::isnan(logdet(a).item<double>()));
  expect_values(linalg_det(zeros({2, 0, 0})), {1, 1});
}

TEST(Determinant, HasAGradientWhereTheMatrixIsSingular) {
  // Rank 2 and 1 of 3: the cofactors are those of the minors, found by hand.
  const Tensor rank2 = tensor_from({1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 5.0, 7.0, 9.0}, {3, 3});
  const Tensor wanted = tensor_from({3.0, -6.0, 3.0, 3.0, -6.0, 3.0, -3.0, 6.0, -3.0}, {3, 3});
  rank2.set_requires_grad();
  linalg_det(rank2).backward();
  expect_near(rank2.grad(), wanted, 1e-10, 1e-10);
  const Tensor rank1 = ones({3, 3}, DType::kF64).set_requires_grad();
  linalg_det(rank1).backward();
  expect_near(rank1.grad(), zeros({3, 3}, DType::kF64), 1e-12, 0);
  EXPECT_TRUE(gradcheck([](TensorList x) { return std::vector<Tensor>{linalg_det(x[0])}; },
                        {zeros({2, 2}, DType::kF64).set_requires_grad()}));
}

TEST(Determinant, OfASingularMatrixIsZero) {
  const Tensor a = zeros({2, 2});
  EXPECT_EQ(linalg_det(a).item<double>(), 0);
  const auto [sign, logarithm] = linalg_slogdet(a);
  EXPECT_EQ(sign.item<double>(), 0);
  EXPECT_EQ(logarithm.item<double>(), -std::numeric_limits<double>::infinity());
}

TEST(LinearAlgebra, HasTheSameBitsOnAnyNumberOfThreads) {
  const Tensor a = random_tensor({64, 17, 17}) + diag_embed(full({17}, 8));
  expect_same_bits_for_any_threads([&] {
    const auto [q, r] = linalg_qr(a);
    const auto [u, s, vh] = linalg_svd(a);
    return std::vector<Tensor>{
        linalg_inv(a), linalg_solve(a, a.select(0, 0)), linalg_det(a), q, r, u, s, vh};
  });
}

}  // namespace
}  // namespace lockstep
