#include "core/ops/view/stacks.h"

#include "core/dispatch/call_op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/forms/view.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/ops/view/view_copies.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(AtLeast, AddsDimensionsWhereNumpyDoes) {
  EXPECT_EQ(atleast_1d(counting({})).shape(), "[1]");
  EXPECT_EQ(atleast_2d(counting({4})).shape(), "[1, 4]");
  EXPECT_EQ(atleast_3d(counting({4})).shape(), "[1, 4, 1]");
  EXPECT_EQ(atleast_3d(counting({2, 3})).shape(), "[2, 3, 1]");
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(atleast_3d(x).data(), x.data());
}

TEST(ColumnStack, TakesVectorsAsColumns) {
  const Tensor joined = column_stack({tensor_of({1, 2}), counting({2, 2})});
  EXPECT_EQ(joined.shape(), "[2, 3]");
  EXPECT_EQ(values(joined), (Numbers{1, 0, 1, 2, 2, 3}));
}

TEST(Stacks, JoinAlongTheDimensionOfTheirName) {
  const Tensor a = counting({2, 2});
  const Tensor b = counting({2, 2}, DType::kF32).add(10);
  EXPECT_TRUE(equal(hstack({a, b}), cat({a, b}, 1)));
  EXPECT_TRUE(equal(vstack({a, b}), cat({a, b}, 0)));
  EXPECT_TRUE(equal(dstack({a, b}), stack({a, b}, 2)));
  const Tensor x = tensor_of({1, 2});
  const Tensor y = tensor_of({3, 4});
  EXPECT_EQ(values(hstack({x, y})), (Numbers{1, 2, 3, 4}));
  EXPECT_TRUE(equal(vstack({x, y}), tensor_of({1, 2, 3, 4}).view({2, 2})));
  EXPECT_TRUE(equal(dstack({x, y}), tensor_of({1, 3, 2, 4}).view({1, 2, 2})));
  EXPECT_TRUE(equal(vstack({x, a}), tensor_of({1, 2, 0, 1, 2, 3}).view({3, 2})));
  expect_error<ShapeError>([] { hstack({}); }, "[hstack]", "at least one tensor");
}

TEST(Splits, CutTheDimensionOfTheirName) {
  const Tensor x = counting({2, 4, 6});
  EXPECT_TRUE(equal(hsplit(x, 2)[1], x.slice(1, 2, 4)));
  EXPECT_TRUE(equal(vsplit(x, 2)[1], x.slice(0, 1, 2)));
  EXPECT_TRUE(equal(dsplit(x, 3)[1], x.slice(2, 2, 4)));
  EXPECT_TRUE(equal(hsplit(x, {1, 3})[1], x.slice(1, 1, 3)));
  EXPECT_TRUE(equal(vsplit(x, IntList{1})[0], x.slice(0, 0, 1)));
  EXPECT_TRUE(equal(dsplit(x, {1, 2})[2], x.slice(2, 2, 6)));
  EXPECT_EQ(values(hsplit(counting({4}), 2)[1]), (Numbers{2, 3}));
  expect_error<ShapeError>([&] { hsplit(x, 3); }, "[hsplit]", "size 4 of dimension 1", "got 3");
  expect_error<ShapeError>([] { vsplit(counting({4}), 2); }, "[vsplit]", "at least 2 dimensions");
  expect_error<ShapeError>([] { dsplit(counting({4, 2}), 2); }, "[dsplit]", "at least 3");
}

TEST(TensorSplit, GivesTheFirstPartsOneMore) {
  const std::vector<Tensor> parts = tensor_split(counting({5}), 3);
  EXPECT_EQ(values(parts[0]), (Numbers{0, 1}));
  EXPECT_EQ(values(parts[2]), (Numbers{4}));
  EXPECT_EQ(values(tensor_split(counting({5}), {1, 3})[1]), (Numbers{1, 2}));
}

TEST(ChannelShuffle, InterleavesTheGroups) {
  EXPECT_EQ(values(channel_shuffle(counting({1, 6, 1}), 2)), (Numbers{0, 3, 1, 4, 2, 5}));
  expect_error<ShapeError>([] { channel_shuffle(counting({1, 6, 1}), 4); }, "[channel_shuffle]");
  expect_error<ShapeError>([] { channel_shuffle(counting({1, 6}), 2); }, "[channel_shuffle]");
}

TEST(AsStridedScatter, WritesByStorageAndKeepsStrides) {
  const Tensor x = counting({2, 3}).t();  // [3, 2] with strides [1, 3]
  const Tensor written = as_strided_scatter(x, tensor_of({-1, -2}), {2}, {1}, 2);
  EXPECT_TRUE(same(written.strides(), x.strides()));
  EXPECT_EQ(values(written), (Numbers{0, -2, 1, 4, -1, 5}));
  EXPECT_EQ(values(x), (Numbers{0, 3, 1, 4, 2, 5}));
  expect_error<ShapeError>(
      [&] {
        as_strided_scatter(x, tensor_of({1, 2}), {2}, {6});
      },
      "[as_strided_scatter]");
  expect_error<ShapeError>([&] { as_strided_scatter(x, tensor_of({1}), {2}, {1}); },
                           "[as_strided_scatter]");
}

TEST(ViewCopies, OwnTheirMemory) {
  const Tensor x = counting({6});
  EXPECT_NE(narrow_copy(x, 0, 0, 3).storage().get(), x.storage().get());
  EXPECT_NE(unfold_copy(x, 0, 2, 2).storage().get(), x.storage().get());
  EXPECT_EQ(ravel(x.view({2, 3})).storage().get(), x.storage().get());
  EXPECT_EQ(values(ravel(x.view({2, 3}).t())), (Numbers{0, 3, 1, 4, 2, 5}));
}

}  // namespace
}  // namespace lockstep
