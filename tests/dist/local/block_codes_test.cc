#include "dist/local/block_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "tests/core/expect_error.h"
#include "tests/dist/ddp/known_gradients.h"

namespace lockstep::dist {
namespace {

std::vector<float> floats(const Tensor& values) {
  return {values.data<float>(), values.data<float>() + values.numel()};
}

TEST(BlockCodes, AValueIsOffByAtMostHalfAStepOfItsBlock) {
  const Tensor values = random_values(1, {4 * kCodedBlock});
  values.slice(0, kCodedBlock, 2 * kCodedBlock)
      .mul_(scalar_tensor(1e-6));  // scales are a block's own
  const std::vector<float> exact = floats(values);
  for (const auto& [bits, steps] : {std::pair(8, 127.0), std::pair(4, 7.0)}) {
    const std::vector<float> found = floats(decode_blocks(encode_blocks(values, bits), bits));
    ASSERT_EQ(found.size(), exact.size());
    for (size_t block = 0; block < exact.size(); block += kCodedBlock) {
      double largest = 0;
      for (size_t i = block; i < block + kCodedBlock; ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(exact[i])));
      }
      for (size_t i = block; i < block + kCodedBlock; ++i) {
        ASSERT_NEAR(found[i], exact[i], largest / steps / 2 * 1.0001) << bits << " bits, " << i;
      }
    }
  }
}

TEST(BlockCodes, BytesAreTheScaleAndThenTheCodes) {
  Tensor values = zeros({kCodedBlock}, DType::kF32);
  auto* const numbers = values.data<float>();
  numbers[0] = 7;
  numbers[1] = -7;
  numbers[2] = 1;
  const Tensor four = encode_blocks(values, 4);
  EXPECT_EQ(four.numel(), coded_bytes(kCodedBlock, 4));
  EXPECT_EQ(coded_bytes(kCodedBlock, 4), 4 + 128);
  EXPECT_EQ(coded_bytes(2 * kCodedBlock, 8), 2 * (4 + 256));
  const auto* const bytes = four.data<uint8_t>();
  float scale = 0;
  std::memcpy(&scale, bytes, sizeof scale);
  EXPECT_EQ(scale, 1);
  EXPECT_EQ(bytes[4], 14 | 0 << 4);
  EXPECT_EQ(bytes[5], 8 | 7 << 4);
  const Tensor eight = encode_blocks(values, 8);
  EXPECT_EQ(eight.numel(), coded_bytes(kCodedBlock, 8));
  EXPECT_EQ(eight.data<uint8_t>()[4], 254);
  EXPECT_EQ(eight.data<uint8_t>()[5], 0);
}

TEST(BlockCodes, ZerosStayZerosAndWhatIsNotFiniteIsNan) {
  for (const int bits : {4, 8}) {
    const Tensor values = zeros({3 * kCodedBlock}, DType::kF32);
    values.data<float>()[kCodedBlock] = std::numeric_limits<float>::infinity();
    values.data<float>()[2 * kCodedBlock] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> found = floats(decode_blocks(encode_blocks(values, bits), bits));
    EXPECT_TRUE(std::all_of(found.begin(), found.begin() + kCodedBlock,
                            [](float each) { return each == 0; }));
    EXPECT_TRUE(std::all_of(found.begin() + kCodedBlock, found.end(),
                            [](float each) { return std::isnan(each); }));
  }
}

TEST(BlockCodes, AnotherNumberOfValuesIsRefused) {
  expect_error<ShapeError>([] { (void)encode_blocks(zeros({100}, DType::kF32), 8); },
                           "[encode_blocks]", "got 100");
}

}  // namespace
}  // namespace lockstep::dist
