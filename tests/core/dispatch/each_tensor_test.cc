#include "core/dispatch/each_tensor.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

Tensor tensor(int64_t size) { return empty_tensor({size}, DType::kF32, kMeta); }

template <class A>
std::vector<int64_t> sizes_in(const A& argument) {
  std::vector<int64_t> sizes;
  each_tensor(argument, [&](const Tensor& each) { sizes.push_back(each.size(0)); });
  return sizes;
}

using Sizes = std::vector<int64_t>;

TEST(EachTensor, VisitsTheTensorsOfEveryKindOfArgument) {
  const std::vector<Tensor> list{tensor(1), tensor(2)};
  const std::vector<Tensor> gaps{tensor(1), Tensor(), tensor(3)};
  const Tensor one = tensor(4);
  EXPECT_EQ(sizes_in(one), Sizes({4}));
  EXPECT_EQ(sizes_in(OptionalTensor(one)), Sizes({4}));
  EXPECT_EQ(sizes_in(OptionalTensor()), Sizes());
  EXPECT_EQ(sizes_in(TensorList(list)), Sizes({1, 2}));
  EXPECT_EQ(sizes_in(MutableTensorList(list)), Sizes({1, 2}));
  EXPECT_EQ(sizes_in(OptionalTensorList(gaps)), Sizes({1, 3}));
  EXPECT_EQ(sizes_in(int64_t{5}), Sizes());
}

}  // namespace
}  // namespace lockstep
