#include "core/ops/pointwise/promotion.h"

#include <gtest/gtest.h>

#include "core/ops/pointwise/pointwise.h"

namespace lockstep {
namespace {

Tensor vector_of(DType dtype) { return empty_tensor({2}, dtype); }
Tensor zero_dim(DType dtype) { return empty_tensor({}, dtype); }

TEST(Promotion, OfOneCategoryIsTheSmallestDTypeThatHoldsBoth) {
  EXPECT_EQ(result_type(vector_of(DType::kU8), vector_of(DType::kI8)), DType::kI16);
  EXPECT_EQ(result_type(vector_of(DType::kBool), vector_of(DType::kU8)), DType::kU8);
  EXPECT_EQ(result_type(vector_of(DType::kI64), vector_of(DType::kF16)), DType::kF16);
  EXPECT_EQ(result_type(vector_of(DType::kF16), vector_of(DType::kBF16)), DType::kF32);
  EXPECT_EQ(result_type(vector_of(DType::kF32), vector_of(DType::kF64)), DType::kF64);
}

TEST(Promotion, AZeroDimTensorCountsOnlyWhenItsKindIsHigher) {
  EXPECT_EQ(result_type(vector_of(DType::kF32), zero_dim(DType::kF64)), DType::kF32);
  EXPECT_EQ(result_type(vector_of(DType::kI8), zero_dim(DType::kI64)), DType::kI8);
  EXPECT_EQ(result_type(vector_of(DType::kI8), zero_dim(DType::kF64)), DType::kF64);
  EXPECT_EQ(result_type(vector_of(DType::kBool), zero_dim(DType::kU8)), DType::kU8);
  EXPECT_EQ(result_type(vector_of(DType::kBF16), zero_dim(DType::kF32)), DType::kBF16);
  EXPECT_EQ(result_type(zero_dim(DType::kF32), zero_dim(DType::kF64)), DType::kF64);
}

TEST(Promotion, ANumberCountsOnlyWhenItsKindIsHigher) {
  EXPECT_EQ(result_type(vector_of(DType::kU8), 300), DType::kU8);
  EXPECT_EQ(result_type(vector_of(DType::kBool), 1), DType::kI64);
  EXPECT_EQ(result_type(vector_of(DType::kBool), true), DType::kBool);
  EXPECT_EQ(result_type(vector_of(DType::kI64), 1.5), DType::kF32);
  EXPECT_EQ(result_type(vector_of(DType::kF16), 1.5), DType::kF16);
  EXPECT_EQ(result_type(zero_dim(DType::kF64), 1.5), DType::kF64);
}

TEST(Promotion, OfAllThreeCategoriesTakesTheHighestKindFirst) {
  const DType dtype =
      Promotion().add(vector_of(DType::kI16)).add(zero_dim(DType::kI64)).add(Scalar(2)).result();
  EXPECT_EQ(dtype, DType::kI16);
  EXPECT_EQ(Promotion().add(vector_of(DType::kI16)).add(zero_dim(DType::kF16)).add(1.5).result(),
            DType::kF16);
}

TEST(Promotion, DecidesTheDTypeOfOperators) {
  EXPECT_EQ(div(vector_of(DType::kI64), 2).dtype(), DType::kF32);
  EXPECT_EQ(square(vector_of(DType::kBool)).dtype(), DType::kI64);
  EXPECT_EQ(exp(vector_of(DType::kI32)).dtype(), DType::kF32);
  EXPECT_EQ(eq(vector_of(DType::kF32), vector_of(DType::kI64)).dtype(), DType::kBool);
}

}  // namespace
}  // namespace lockstep
