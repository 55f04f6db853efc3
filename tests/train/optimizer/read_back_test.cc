#include "train/optimizer/read_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/stream.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;

TEST(ReadBack, GivesTheNumbersOfEachTensorInTheOrderOfTheCalls) {
  for (const char* device : {"cpu", "host:0"}) {
    const Device there = parse_device(device);
    ReadBack numbers;
    EXPECT_EQ(numbers.add(tensor({1.5f, -2.0f}).to(there)), 0u);
    EXPECT_EQ(numbers.add(full({1}, 0.1, {DType::kF64, there})), 1u);
    numbers.wait();
    EXPECT_THAT(numbers.values(0), ElementsAre(1.5, -2.0)) << device;
    EXPECT_THAT(numbers.values(1), ElementsAre(0.1)) << device;
    EXPECT_EQ(numbers.add(tensor({7.0f}).to(there)), 2u);
    numbers.wait();
    EXPECT_THAT(numbers.values(0), ElementsAre(1.5, -2.0)) << device;
    EXPECT_THAT(numbers.values(2), ElementsAre(7.0)) << device;
  }
}

TEST(ReadBack, CopiesWhatTheTensorIsWhenItIsAdded) {
  const Device there = parse_device("host:0");
  const Tensor value = tensor({1.0f}).to(there);
  ReadBack numbers;
  numbers.add(value);
  value.fill_(2);
  numbers.wait();
  EXPECT_THAT(numbers.values(0), ElementsAre(1.0));
}

TEST(ReadBack, WaitsForTheCopiesOfEveryStream) {
  const Device there = parse_device("host:0");
  const Stream side = get_stream_from_pool(there);
  std::vector<Tensor> kept;  // read by both streams
  ReadBack numbers;
  for (int i = 0; i < 20; ++i) {
    const Tensor& here = kept.emplace_back(full({1 << 16}, i, {DType::kF32, there}));
    numbers.add(here + 1);
    synchronize(there);
    const StreamGuard guard(side);
    numbers.add(here * 2);
    numbers.add(here * 3);
  }
  numbers.wait();
  for (size_t i = 0; i < 20; ++i) {
    const auto value = static_cast<double>(i);
    EXPECT_EQ(numbers.values(3 * i).back(), value + 1);
    EXPECT_EQ(numbers.values(3 * i + 1).back(), value * 2);
    EXPECT_EQ(numbers.values(3 * i + 2).back(), value * 3);
  }
}

TEST(ReadBack, OneNumberIsReadAtOnce) {
  EXPECT_EQ(read_number(full({}, 0.25, {DType::kF64, kCPU})), 0.25);
  EXPECT_EQ(read_number(full({1}, 0.5, {DType::kF32, parse_device("host:0")})), 0.5);
}

}  // namespace
}  // namespace lockstep::train
