#include "profile/argument_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/ops/factory/factory.h"

namespace lockstep::profile {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<ArgumentInfo> through(std::span<const Value> arguments, size_t room = 4096) {
  std::vector<char> bytes(room);
  return read_arguments({bytes.data(), write_arguments(arguments, bytes)});
}

TEST(ArgumentRecord, KeepsShapesDtypesAndNumbers) {
  const Tensor x = zeros({2, 3}), y = zeros({4}, {DType::kBF16, kCPU}), scalar = zeros({});
  const std::vector<Tensor> list = {x, y};
  const std::vector<int64_t> dims = {0, -1};
  const std::vector<Value> arguments = {
      Value(x),     Value(scalar), Value(TensorList(list)), Value(int64_t{7}),
      Value(true),  Value(0.5),    Value(IntList(dims)),    Value(),
      Value("mean")};
  const std::vector<ArgumentInfo> expected = {
      {{2, 3}, {}, "float", ""},
      {{}, {}, "float", ""},
      {{}, {{2, 3}, {4}}, "TensorList", ""},
      {{}, {}, "Scalar", "7"},
      {{}, {}, "Scalar", "True"},
      {{}, {}, "Scalar", "0.5"},
      {{}, {}, "ScalarList", "[0, -1]"},
      {},
      {},
  };
  EXPECT_EQ(through(arguments), expected);
}

TEST(ArgumentRecord, AnUndefinedTensorHasNoType) {
  const Tensor undefined;
  EXPECT_EQ(through(std::vector<Value>{Value(undefined)}), std::vector<ArgumentInfo>{{}});
}

TEST(ArgumentRecord, KeepsTheArgumentsThatFit) {
  const Tensor x = zeros({2, 3});
  const std::vector<Value> arguments = {Value(x), Value(x), Value(x)};
  EXPECT_THAT(through(arguments, 0), IsEmpty());
  EXPECT_THAT(through(arguments, 18), IsEmpty());
  EXPECT_THAT(through(arguments, 19), SizeIs(1));
  EXPECT_THAT(through(arguments, 56), SizeIs(2));
  EXPECT_THAT(through(arguments, 57), SizeIs(3));
}

TEST(ArgumentRecord, OfLongListsTheFirstAreKept) {
  const std::vector<Tensor> tensors(40, zeros({1}));
  const std::vector<int64_t> numbers(20, 1);
  const auto kept =
      through(std::vector<Value>{Value(TensorList(tensors)), Value(IntList(numbers))});
  EXPECT_THAT(kept[0].sizes_of_list, SizeIs(16));
  EXPECT_EQ(kept[1].value, "[1, 1, 1, 1, 1, 1, 1, 1]");
}

}  // namespace
}  // namespace lockstep::profile
