#include "core/base/philox.h"

#include <gtest/gtest.h>

#include <bit>

namespace lockstep {
namespace {

using Words = std::array<uint32_t, 4>;

// Known answers published with the Random123 library of Philox's authors (philox4x32, 10 rounds).
TEST(Philox, AgreesWithThePublishedKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IsAConstantExpression) {
  static_assert(philox({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5);
}

TEST(Philox, EveryInputBitChangesAboutHalfOfTheOutputBits) {
  const Words base = philox({1, 2, 3, 4}, {5, 6});
  for (int bit = 0; bit < 192; ++bit) {
    Words counter = {1, 2, 3, 4};
    std::array<uint32_t, 2> key = {5, 6};
    const uint32_t mask = 1u << (bit % 32);
    if (bit < 128) {
      counter[bit / 32] ^= mask;
    } else {
      key[bit / 32 - 4] ^= mask;
    }
    const Words words = philox(counter, key);
    int changed = 0;
    for (int i = 0; i < 4; ++i) changed += std::popcount(base[i] ^ words[i]);
    EXPECT_GT(changed, 36) << "input bit " << bit;  // mean 64, standard deviation 5.7
    EXPECT_LT(changed, 92) << "input bit " << bit;
  }
}

}  // namespace
}  // namespace lockstep
