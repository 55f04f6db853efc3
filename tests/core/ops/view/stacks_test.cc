#include "core/ops/view/stacks.h"

#include "core/dispatch/call_op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/rearrange.h"
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
