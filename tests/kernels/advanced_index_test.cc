#include "core/ops/index/advanced_index.h"

#include <limits>

#include "autograd/autograd.h"
#include "core/dispatch/call_op.h"
#include "core/dispatch/dispatcher.h"
#include "core/ops/index/index.h"
#include "core/ops/index/scatter.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

Tensor places(std::vector<int64_t> numbers) {
  return tensor_from<int64_t>(numbers, {static_cast<int64_t>(numbers.size())});
}

std::vector<Tensor> list(std::initializer_list<Tensor> indices) { return indices; }

OptionalTensorList by(const std::vector<Tensor>& indices) {
  return {indices.data(), indices.size()};
}

TEST(Index, PutsTheShapeOfNeighboursInTheirPlaceAndOthersInFront) {
  const Tensor x = counting({2, 3, 4, 5});
  const Tensor two = places({0, 1}), none;
  EXPECT_EQ(index(x, by(list({none, two, two}))).shape(), "[2, 2, 5]");
  EXPECT_EQ(index(x, by(list({none, two, none, two}))).shape(), "[2, 2, 4]");
  EXPECT_EQ(index(x, by(list({two, none, none, two.unsqueeze(1)}))).shape(), "[2, 2, 3, 4]");
}

TEST(Index, TakesAMaskForItsCoordinates) {
  const Tensor x = counting({2, 3});
  const Tensor mask = gt(x, 3);
  EXPECT_EQ(values(index(x, by(list({mask})))), (Numbers{4, 5}));
  EXPECT_EQ(values(index(x, by(list({mask.to(DType::kU8)})))), (Numbers{4, 5}));
  expect_error<IndexError>([&] { index(x, by(list({places({0}), mask}))); }, "mask");
}

TEST(Index, NamesIndexAndSizeWhenOutOfRange) {
  const Tensor x = counting({2, 3}), none;
  expect_error<IndexError>([&] { index(x, by(list({none, places({1, 3})}))); }, "[-3, 3)");
  expect_error<IndexError>([&] { index(x, by(list({none, places({-4})}))); }, "-4");
  expect_error<IndexError>(
      [&] {
        index(x, by(list({places({0}), places({0}), places({0})})));
      },
      "too many indices");
  expect_error<IndexError>([&] { index(x, by(list({none}))); }, "at least one");
}

TEST(IndexPut, KeepsTheLastOfSeveralValuesAndAddsThemInOrder) {
  const Tensor x = zeros({3});
  const Tensor twice = places({1, 1, -2});
  const Tensor written = tensor_from<float>({1e8F, 1, -1e8F}, {3});
  EXPECT_EQ(values(index_put(x, by(list({twice})), written)), (Numbers{0, -1e8, 0}));
  // In f32, 1e8 + 1 rounds to 1e8, so any other order of the sum would give 1.
  EXPECT_EQ(values(index_put(x, by(list({twice})), written, true)), (Numbers{0, 0, 0}));
}

TEST(IndexPut, MayReadItsValuesFromTheTensorItWrites) {
  const Tensor x = counting({4});
  index_put_(x, by(list({places({1, 2, 3, 0})})), x);
  EXPECT_EQ(values(x), (Numbers{3, 0, 1, 2}));
}

TEST(IndexPut, ChangesAViewInPlaceAndItsBaseWithIt) {
  const Tensor base = zeros({2, 3}).set_requires_grad();
  const Tensor copy = base.clone();
  const Tensor values_put = ones({2}).set_requires_grad();
  index_put_(copy.select(1, 2), by(list({places({0, 1})})), values_put);
  EXPECT_EQ(values(copy), (Numbers{0, 0, 1, 0, 0, 1}));
  copy.sum().backward();
  EXPECT_EQ(values(base.grad()), (Numbers{1, 1, 0, 1, 1, 0}));
  EXPECT_EQ(values(values_put.grad()), (Numbers{1, 1}));
}

TEST(IndexPut, WritesOneNumberOfAnotherDtypeThroughAMask) {
  const Tensor x = counting({4});
  const Tensor number = full({}, 9);
  EXPECT_EQ(values(index_put(x, by(list({gt(x, 1)})), number)), (Numbers{0, 1, 9, 9}));
  expect_error<DTypeError>([&] { index_put(x, by(list({places({1})})), number); }, "int64");
}

TEST(Scatter, ReductionsLetNaNThrough) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor source = tensor_from<float>({nan, 2, 1, nan}, {4});
  for (const char* reduce : {"amax", "amin", "sum", "prod", "mean"}) {
    const Tensor got = scatter_reduce(zeros({2}), 0, places({0, 0, 1, 1}), source, reduce);
    for (const double value : values(got)) EXPECT_TRUE(std::isnan(value)) << reduce;
  }
}

TEST(Scatter, AnExtremumGivesItsGradientToAllThatAreEqualToIt) {
  const Tensor index = tensor_from<int64_t>({0, 0, 0, 1}, {4});
  const Tensor grad = tensor_of({6, 10, 100});
  for (const double sign : {1.0, -1.0}) {
    const auto gradients = [&](bool include_self) {
      // self[0] equals the extremum of what is scattered there; nothing is scattered to self[2].
      const Tensor self = (tensor_of({4, 1, 7}) * sign).set_requires_grad();
      const Tensor src = (tensor_of({4, 4, 2, 3}) * sign).set_requires_grad();
      const Tensor out =
          scatter_reduce(self, 0, index, src, sign > 0 ? "amax" : "amin", include_self);
      expect_values(out * sign, {4, 3, 7});
      out.backward(grad);
      return std::pair(self.grad(), src.grad());
    };
    const auto [self, src] = gradients(true);
    expect_values(self, {2, 0, 100});
    expect_values(src, {2, 2, 0, 10});
    const auto [old_self, only_src] = gradients(false);
    expect_values(old_self, {0, 0, 100});
    expect_values(only_src, {3, 3, 0, 10});
  }
}

TEST(Scatter, MeansOfIntegersRoundDown) {
  const Tensor self = tensor_from<int64_t>({-3, 1}, {2});
  const Tensor source = tensor_from<int64_t>({-4, 0}, {2});
  EXPECT_EQ(values(scatter_reduce(self, 0, places({0, 0}), source, "mean")), (Numbers{-3, 1}));
}

TEST(Scatter, MeansOfIntegersAreOfSumsThatWrapAround) {
  const Tensor self = zeros({1}, DType::kI8);
  const Tensor source = tensor_from<int8_t>({100, 100}, {2});
  // 200 is -56 in 8 bits.
  EXPECT_EQ(values(scatter_reduce(self, 0, places({0, 0}), source, "mean", false)), Numbers{-28});
}

TEST(Scatter, ReadsASourceThatItWrites) {
  const Tensor x = counting({4});
  const Operator& op = dispatcher().find("scatter_.src");
  const Tensor around = places({1, 2, 3, 0});
  std::vector<Value> arguments = {Value(x), Value(int64_t{0}), Value(around), Value(x)};
  Stack stack(arguments);
  op.call_boxed(stack);
  EXPECT_EQ(values(x), (Numbers{3, 0, 1, 2}));
}

TEST(IndexFill, CountsNegativeIndicesFromTheEndAndRefusesOthers) {
  const Tensor x = counting({3});
  EXPECT_EQ(values(index_fill(x, 0, places({-1}), 7)), (Numbers{0, 1, 7}));
  expect_error<IndexError>([&] { index_fill(x, 0, places({3}), 7); }, "3");
  expect_error<IndexError>([&] { index_copy(x, 0, places({-1}), ones({1})); }, "-1");
}

TEST(Unfold, WindowsShareTheStorageAndAddUpTheirGradients) {
  const Tensor x = counting({4}).set_requires_grad();
  const Tensor windows = unfold(x, 0, 2, 1);
  EXPECT_EQ(windows.shape(), "[3, 2]");
  EXPECT_TRUE(windows.storage() == x.storage());
  windows.sum().backward();
  EXPECT_EQ(values(x.grad()), (Numbers{1, 2, 2, 1}));
}

TEST(Diagonal, SharesTheStorageSoThatChangesReachTheBase) {
  const Tensor x = zeros({2, 3});
  diagonal(x, 1).fill_(5);
  EXPECT_EQ(values(x), (Numbers{0, 5, 0, 0, 0, 5}));
}

TEST(UnsafeSplit, PartsMayBeChangedInPlaceWhileRecording) {
  const Tensor x = ones({4}).set_requires_grad();
  const Tensor copy = x.clone();
  unsafe_split(copy, 2)[0].mul_(full({}, 3.0));
  copy.sum().backward();
  EXPECT_EQ(values(x.grad()), (Numbers{3, 3, 1, 1}));
}

TEST(UnsafeSplit, OutMustHaveATensorForEachPart) {
  const std::vector<Tensor> two = {zeros({0}), zeros({0})};
  const Tensor x = ones({5});
  expect_error<ShapeError>(
      [&] {
        call_op_tensors("unsafe_split.Tensor_out", {x, 2}, {{"out", TensorList(two)}});
      },
      "[unsafe_split]", "expected 3, got 2");
  call_op_tensors("unsafe_split.Tensor_out", {x, 3}, {{"out", TensorList(two)}});
  EXPECT_EQ(values(two[1]), (Numbers{1, 1}));
}

TEST(OneHot, RefusesClassesOutsideTheRange) {
  EXPECT_EQ(values(one_hot(places({1, 0}), 3)), (Numbers{0, 1, 0, 1, 0, 0}));
  expect_error<IndexError>([] { one_hot(places({3}), 3); }, "3");
  expect_error<IndexError>([] { one_hot(places({-1})); }, "-1");
  expect_error<ShapeError>([] { one_hot(places({})); }, "num_classes");
}

}  // namespace
}  // namespace lockstep
