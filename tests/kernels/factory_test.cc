#include "core/ops/factory/factory.h"

#include <gtest/gtest.h>

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Factory, FillsWithTheValueItsNameSays) {
  EXPECT_EQ(values(zeros({2, 2})), (Numbers{0, 0, 0, 0}));
  EXPECT_EQ(values(ones({3}, DType::kI16)), (Numbers{1, 1, 1}));
  EXPECT_EQ(values(full({2}, -1.5, DType::kBF16)), (Numbers{-1.5, -1.5}));
  EXPECT_EQ(scalar_tensor(3).dim(), 0);
  EXPECT_EQ(scalar_tensor(3).item<double>(), 3);
  EXPECT_EQ(empty({0, 5}).numel(), 0);
}

TEST(Factory, DTypeComesFromOptionsOrElseFromTheNumber) {
  EXPECT_EQ(zeros({1}).dtype(), DType::kF32);
  EXPECT_EQ(full({1}, 2).dtype(), DType::kI64);
  EXPECT_EQ(full({1}, true).dtype(), DType::kBool);
  EXPECT_EQ(full({1}, 2.0).dtype(), DType::kF32);
  EXPECT_EQ(arange(3).dtype(), DType::kI64);
  EXPECT_EQ(arange(3.0).dtype(), DType::kF32);
  EXPECT_EQ(arange(3, DType::kF64).dtype(), DType::kF64);
  EXPECT_EQ(scalar_tensor(1).dtype(), DType::kF32);
}

TEST(Factory, ArangeStopsBeforeItsEnd) {
  EXPECT_EQ(values(arange(4)), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(values(arange(2, 5)), (Numbers{2, 3, 4}));
  EXPECT_EQ(values(arange(5, 0, -2)), (Numbers{5, 3, 1}));
  EXPECT_EQ(values(arange(0, 1, 0.25)), (Numbers{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(values(arange(1, 8, 3)), (Numbers{1, 4, 7}));
  EXPECT_EQ(arange(3, 3).numel(), 0);
  const Tensor many = arange(100000, DType::kI32);
  for (int i = 0; i < 100000; ++i) ASSERT_EQ(many.data<int32_t>()[i], i);
  expect_error<Error>([] { arange(0, 5, -1); }, "[arange]", "-1");
  expect_error<Error>([] { arange(0, 5, 0); }, "[arange]");
}

TEST(Factory, LikeTakesShapeDTypeAndOrderOfDimensions) {
  const Tensor t = zeros({4, 3}, DType::kF64).t();
  for (const Tensor& like : {empty_like(t), zeros_like(t), ones_like(t), full_like(t, 2)}) {
    EXPECT_TRUE(same(like.sizes(), {3, 4}));
    EXPECT_TRUE(same(like.strides(), t.strides()));
    EXPECT_EQ(like.dtype(), DType::kF64);
  }
  EXPECT_EQ(values(ones_like(t, DType::kI64)), Numbers(12, 1));
  EXPECT_EQ(ones_like(t, DType::kI64).dtype(), DType::kI64);
  EXPECT_TRUE(same(zeros_like(t.expand({2, 3, 4})).strides(), {12, 1, 3}));
}

TEST(Factory, MakesTensorsOnTheThreadsDefaultDeviceWhereNothingNamesOne) {
  const Tensor here = zeros({2});
  const DefaultDeviceGuard guard(kMeta);
  for (const Tensor& made : {empty({3}), zeros({3}), ones({3}), full({3}, 2), arange(3),
                             scalar_tensor(1), rand({3}), randperm(3), tensor_from({1.F}, {1})}) {
    EXPECT_EQ(made.device(), kMeta);
  }
  EXPECT_EQ(zeros({3}, kCPU).device(), kCPU);
  EXPECT_EQ(zeros_like(here).device(), kCPU);
  EXPECT_EQ((here + 1).device(), kCPU);
}

TEST(Factory, MakesMetaTensorsWithoutElements) {
  EXPECT_EQ(zeros({3, 4}, kMeta).device(), kMeta);
  EXPECT_EQ(zeros_like(zeros({2}), TensorOptions(kMeta)).device(), kMeta);
}

TEST(Factory, RequiresGradMakesALeaf) {
  TensorOptions options;
  options.requires_grad = true;
  const Tensor weight = zeros({2}, options);
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_TRUE(weight.is_leaf());
}

TEST(Factory, TensorFromCopiesItsValues) {
  std::vector<float> source{1, 2, 3, 4, 5, 6};
  const Tensor t = tensor_from<float>(source, {2, 3});
  source[0] = 9;
  EXPECT_EQ(values(t), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values(tensor_from<bool>({true, false}, {2})), (Numbers{1, 0}));
  expect_error<ShapeError>([&] { tensor_from<float>(source, {4}); }, "[tensor_from]", "4", "6");
}

TEST(Factory, RefusesImpossibleShapes) {
  expect_error<ShapeError>([] { zeros({2, -1}); }, "-1");
}

}  // namespace
}  // namespace lockstep
