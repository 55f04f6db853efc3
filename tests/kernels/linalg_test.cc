#include "core/ops/matmul/linalg.h"

#include "core/ops/matmul/distance.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Einsum, IsMatmulForItsLetters) {
  const Tensor a = random_tensor({4, 3, 5}), b = random_tensor({4, 5, 2}, DType::kF32, 2);
  expect_near(einsum("bij,bjk->bik", {a, b}), bmm(a, b), 1e-6, 1e-6);
  expect_near(einsum("bij,bjk->kib", {a, b}), bmm(a, b).permute({2, 1, 0}), 1e-6, 1e-6);
}

TEST(Einsum, OrdersAnImpliedResultWithCapitalsFirst) {
  const Tensor x = random_tensor({2, 3, 4});
  expect_near(einsum("baC", {x}), x.permute({2, 1, 0}), 0, 0);
  expect_near(einsum("...ba", {x}), x.permute({0, 2, 1}), 0, 0);
}

TEST(Einsum, TakesDiagonalsOfRepeatedLetters) {
  const Tensor x = random_tensor({3, 4, 3});
  const Tensor diagonals = stack(
      {x.select(0, 0).select(1, 0), x.select(0, 1).select(1, 1), x.select(0, 2).select(1, 2)});
  expect_near(einsum("iji->ij", {x}), diagonals, 0, 0);
  expect_near(einsum("iji->j", {x}), diagonals.sum({0}), 1e-6, 1e-6);
}

TEST(Einsum, StretchesSizesOfOneAndTheDots) {
  const Tensor a = random_tensor({3, 1, 4}), b = random_tensor({5, 4}, DType::kF32, 2);
  expect_near(einsum("...j,...j->...", {a, b}), sum(a * b, {2}), 1e-6, 1e-6);
}

TEST(Einsum, GivesTheSameOverAnyPath) {
  const Tensor a = random_tensor({2, 3}), b = random_tensor({3, 4}), c = random_tensor({4, 5});
  const Tensor wanted = mm(mm(a, b), c);
  expect_near(einsum("ij,jk,kl->il", {a, b, c}), wanted, 1e-5, 1e-5);
  expect_near(einsum("ij,jk,kl->il", {a, b, c}, IntList{1, 2, 0, 1}), wanted, 1e-5, 1e-5);
  expect_near(einsum("ij,jk,kl->il", {a, b, c}, IntList{0, 2, 0, 1}), wanted, 1e-5, 1e-5);
}

TEST(Einsum, RefusesEquationsThatDoNotFit) {
  const Tensor x = random_tensor({2, 3});
  EXPECT_THROW(einsum("ijk->i", {x}), ShapeError);
  EXPECT_THROW(einsum("ij->k", {x}), ShapeError);
  EXPECT_THROW(einsum("ij->ii", {x}), ShapeError);
  EXPECT_THROW(einsum("ii->i", {x}), ShapeError);
  EXPECT_THROW(einsum("ij,jk->ik", {x}), ShapeError);
  EXPECT_THROW(einsum("ij,jk->ik", {x, x}), ShapeError);
  EXPECT_THROW(einsum("i?->i", {x}), ShapeError);
  EXPECT_THROW(einsum("....j->j", {x}), ShapeError);
}

TEST(Diff, TakesNeighboursApartNTimes) {
  const Tensor x = tensor_from<int64_t>({1, 4, 9, 16}, {4});
  EXPECT_EQ(values(diff(x)), (std::vector<double>{3, 5, 7}));
  EXPECT_EQ(values(diff(x, 2)), (std::vector<double>{2, 2}));
  EXPECT_EQ(diff(x, 9).numel(), 0);
  EXPECT_THROW(diff(zeros({})), ShapeError);
}

TEST(Cross, IsPerpendicularToBoth) {
  const Tensor a = random_tensor({7, 3}), b = random_tensor({7, 3}, DType::kF32, 2);
  const Tensor product = linalg_cross(a, b);
  expect_near(sum(product * a, {1}), zeros({7}), 1e-5, 0);
  expect_near(sum(product * b, {1}), zeros({7}), 1e-5, 0);
  EXPECT_THROW(cross(zeros({2, 4}), zeros({2, 4})), ShapeError);
}

TEST(Distance, AgreesWithNormsOfDifferences) {
  const Tensor a = random_tensor({2, 5, 4}), b = random_tensor({6, 4}, DType::kF32, 2);
  for (const double p : {0.0, 0.5, 1.0, 2.0, 3.0, HUGE_VAL}) {
    const Tensor wanted = linalg_vector_norm(a.unsqueeze(2) - b, p, {-1});
    expect_near(cdist(a, b, p), wanted, 1e-6, 1e-5);
  }
  EXPECT_THROW(cdist(a, random_tensor({6, 3})), ShapeError);
  EXPECT_THROW(cdist(a, b, -1), ShapeError);
}

TEST(Distance, OfPairsIsTheUpperTriangle) {
  const Tensor x = random_tensor({9, 4});
  const Tensor all = cdist(x, x);
  std::vector<double> wanted;
  for (int64_t i = 0; i < 9; ++i) {
    for (int64_t j = i + 1; j < 9; ++j) wanted.push_back(all.data<float>()[i * 9 + j]);
  }
  EXPECT_EQ(values(pdist(x)), wanted);
}

}  // namespace
}  // namespace lockstep
