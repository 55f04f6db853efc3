#include "core/ops/linalg/factorize.h"

#include <limits>

#include "autograd/gradcheck.h"
#include "core/ops/index/index.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

Tensor mt(const Tensor& matrices) { return matrices.transpose(-2, -1); }

Tensor unit(int64_t n, DType dtype = DType::kF64) { return diag_embed(ones({n}, dtype)); }

/// A symmetric positive definite matrix as a function of any matrix.
Tensor definite(const Tensor& x) { return matmul(x, mt(x)) + unit(x.size(-2), x.dtype()); }

Tensor symmetric(const Tensor& x) { return x + mt(x); }

TEST(Cholesky, MultipliesBackAndLeavesTheOtherTriangleEmpty) {
  const Tensor a = definite(random_tensor({3, 2, 5, 5}, DType::kF64));
  const Tensor lower = linalg_cholesky(a), upper = linalg_cholesky(a, true);
  expect_near(matmul(lower, mt(lower)), a, 1e-12, 1e-12);
  expect_near(matmul(mt(upper), upper), a, 1e-12, 1e-12);
  expect_near(tril(lower), lower, 0, 0);
  expect_near(triu(upper), upper, 0, 0);
}

TEST(Cholesky, ReadsOneTriangle) {
  const Tensor a = definite(random_tensor({4, 4}, DType::kF64));
  expect_near(linalg_cholesky(tril(a)), linalg_cholesky(a), 0, 0);
  expect_near(linalg_cholesky(triu(a), true), linalg_cholesky(a, true), 0, 0);
}

TEST(Cholesky, NamesTheMatrixThatIsNotPositiveDefinite) {
  const Tensor a = definite(random_tensor({5, 3, 3}));
  a.select(0, 3).copy_(-a.select(0, 3));
  expect_error<Error>([&] { linalg_cholesky(a); }, "[linalg_cholesky] matrix 3 of the batch",
                      "not positive definite");
  const auto [factor, info] = linalg_cholesky_ex(a);
  expect_values(info, {0, 0, 0, 1, 0});
  expect_error<ShapeError>(
      [&] {
        linalg_cholesky(random_tensor({2, 3}));
      },
      "[linalg_cholesky]", "[2, 3]");
  expect_error<DTypeError>([&] { linalg_cholesky(counting({2, 2}, DType::kI64)); }, "int64");
}

TEST(Cholesky, HasTheGradientOfASymmetricChange) {
  for (const bool upper : {false, true}) {
    const auto function = [upper](TensorList inputs) {
      return std::vector<Tensor>{linalg_cholesky(definite(inputs[0]), upper)};
    };
    EXPECT_TRUE(gradcheck(function, {leaf({2, 3, 3})}));
    EXPECT_TRUE(gradgradcheck(function, {leaf({3, 3})}));
  }
  const Tensor a = definite(random_tensor({3, 3}, DType::kF64)).detach().set_requires_grad();
  linalg_cholesky(a).sum().backward();
  expect_near(a.grad(), mt(a.grad()), 1e-12, 1e-12);
}

TEST(Lu, MultipliesBackForEveryShape) {
  for (const Dims& sizes : {Dims{2, 4, 4}, Dims{5, 3}, Dims{2, 3, 5}, Dims{1, 1}, Dims{2, 0, 3}}) {
    const Tensor a = random_tensor(sizes, DType::kF64);
    const auto [p, l, u] = linalg_lu(a);
    expect_near(matmul(p, matmul(l, u)), a, 1e-12, 1e-12);
    expect_near(matmul(p, mt(p)), unit(a.size(-2)).expand(p.sizes()), 0, 0);
  }
}

TEST(Lu, ExchangesTheRowOfTheLargestElement) {
  const Tensor a = tensor_from({1.0, 2.0, 4.0, 3.0}, {2, 2});
  const auto [lu, pivots, info] = linalg_lu_factor_ex(a);
  expect_values(pivots, {2, 2});
  expect_values(lu.flatten(), {4, 3, 0.25, 1.25});
  EXPECT_EQ(info.item<int64_t>(), 0);
}

TEST(Lu, TellsWhereTheFactorIsSingular) {
  const Tensor a = tensor_from({1.0, 2.0, 2.0, 4.0}, {2, 2});
  EXPECT_EQ(std::get<2>(linalg_lu_factor_ex(a)).item<int64_t>(), 2);
  expect_error<Error>([&] { linalg_lu_factor(a); }, "[linalg_lu_factor] the matrix",
                      "not invertible");
  expect_error<Error>([&] { linalg_lu(a, false); }, "without row exchanges");
}

TEST(Lu, UnpackRefusesPivotsThatAreNoRows) {
  const Tensor a = random_tensor({2, 2});
  for (const double pivot : {0.0, 3.0}) {
    const Tensor pivots = tensor_of({1, pivot}).to(DType::kI32);
    expect_error<IndexError>([&] { lu_unpack(a, pivots); }, "[lu_unpack]", "[1, 2]");
  }
}

TEST(Qr, IsOrthogonalAndTriangularForEveryShape) {
  for (const Dims& sizes : {Dims{2, 4, 4}, Dims{5, 3}, Dims{2, 3, 5}, Dims{2, 0, 3}, Dims{3, 0}}) {
    const Tensor a = random_tensor(sizes, DType::kF64);
    for (const char* mode : {"reduced", "complete"}) {
      const auto [q, r] = linalg_qr(a, mode);
      expect_near(matmul(q, r), a, 1e-12, 1e-12);
      expect_near(matmul(mt(q), q), unit(q.size(-1)).expand(Dims(matmul(mt(q), q).sizes())), 1e-12,
                  0);
      expect_near(triu(r), r, 0, 0);
      expect_near(std::get<1>(linalg_qr(a, "r")), r.slice(-2, 0, std::min(a.size(-2), a.size(-1))),
                  0, 0);
    }
  }
}

TEST(Qr, RefusesDerivativesThatDoNotExist) {
  const Tensor tall = leaf({4, 2});
  expect_error<Error>([&] { std::get<0>(linalg_qr(tall, "complete")).sum().backward(); },
                      "more rows than columns");
  expect_error<Error>([&] { std::get<1>(linalg_qr(tall, "r")).sum().backward(); }, "mode \"r\"");
  expect_error<Error>([&] { linalg_qr(tall, "economic"); }, "economic");
}

TEST(Eigh, SatisfiesItsEquationInAscendingOrder) {
  const Tensor a = symmetric(random_tensor({3, 5, 5}, DType::kF64));
  const auto [values, vectors] = linalg_eigh(a);
  expect_near(matmul(a, vectors), vectors * values.unsqueeze(-2), 1e-12, 1e-12);
  for (int64_t i = 0; i + 1 < 5; ++i) {
    EXPECT_LT(values.select(1, i).select(0, 0).item<double>(),
              values.select(1, i + 1).select(0, 0).item<double>());
  }
  expect_near(linalg_eigvalsh(tril(a)), values, 1e-12, 1e-12);
  expect_near(linalg_eigvalsh(triu(a), "U"), values, 1e-12, 1e-12);
}

TEST(Eigh, HasTheGradientOfASymmetricChange) {
  const auto both = [](TensorList inputs) {
    const auto [values, vectors] = linalg_eigh(symmetric(inputs[0]));
    // The sign of a vector is free, its square is not.
    return std::vector<Tensor>{values, vectors * vectors};
  };
  EXPECT_TRUE(gradcheck(both, {leaf({3, 3})}));
  EXPECT_TRUE(gradgradcheck(both, {leaf({3, 3})}));
  EXPECT_TRUE(gradcheck(
      [](TensorList inputs) { return std::vector<Tensor>{linalg_eigvalsh(symmetric(inputs[0]))}; },
      {leaf({2, 3, 3})}));
}

TEST(Eigh, RefusesNumbersThatAreNotFinite) {
  const Tensor a = symmetric(random_tensor({4, 3, 3}));
  a.select(0, 2).select(0, 1).fill_(std::numeric_limits<double>::quiet_NaN());
  expect_error<Error>([&] { linalg_eigvalsh(a); }, "[linalg_eigh] matrix 2 of the batch",
                      "not finite");
  expect_error<Error>([&] { linalg_svdvals(a); }, "[linalg_svd] matrix 2 of the batch",
                      "not finite");
  expect_error<Error>([&] { linalg_eigvalsh(a, "X"); }, "UPLO");
}

TEST(Svd, MultipliesBackForEveryShape) {
  for (const Dims& sizes : {Dims{2, 4, 4}, Dims{5, 3}, Dims{2, 3, 5}, Dims{2, 0, 3}, Dims{3, 0}}) {
    const Tensor a = random_tensor(sizes, DType::kF64);
    const int64_t k = std::min(a.size(-2), a.size(-1));
    for (const bool full : {false, true}) {
      const auto [u, s, vh] = linalg_svd(a, full);
      const Tensor product = matmul(u.slice(-1, 0, k) * s.unsqueeze(-2), vh.slice(-2, 0, k));
      expect_near(product, a, 1e-12, 1e-12);
      const Tensor left = matmul(mt(u), u), right = matmul(vh, mt(vh));
      expect_near(left, unit(u.size(-1)).expand(left.sizes()), 1e-12, 0);
      expect_near(right, unit(vh.size(-2)).expand(right.sizes()), 1e-12, 0);
      expect_near(linalg_svdvals(a), s, 1e-12, 1e-12);
    }
  }
}

TEST(Svd, RefusesADriver) {
  expect_error<Error>([&] { linalg_svdvals(random_tensor({2, 2}), "gesvd"); }, "gesvd");
}

}  // namespace
}  // namespace lockstep
