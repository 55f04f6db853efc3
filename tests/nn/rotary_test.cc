#include "nn/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace lockstep::nn {
namespace {

void expect_frequencies(const RotaryFrequencies& got, const std::vector<double>& want) {
  ASSERT_EQ(got.per_pair.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got.per_pair[i] / want[i], 1, 1e-13) << "pair " << i;
  }
}

// The expected values are the published formulas evaluated in double precision by separate code.

TEST(RotaryFrequencies, WithoutScalingTheyAreAGeometricSequence) {
  const RotaryFrequencies got = rotary_frequencies(8, 10000);
  expect_frequencies(got, {1, 0.1, 0.01, 0.001});
  EXPECT_EQ(got.attention_factor, 1);
}

TEST(RotaryFrequencies, LinearDividesThemAll) {
  expect_frequencies(rotary_frequencies(8, 10000, LinearRopeScaling{4}),
                     {0.25, 0.025, 0.0025, 0.00025});
}

TEST(RotaryFrequencies, Llama3KeepsFastPairsDividesSlowOnesAndInterpolatesBetween) {
  const Llama3RopeScaling published;
  expect_frequencies(
      rotary_frequencies(16, 500000, published),
      {1, 0.19392274474868576, 0.037606030930863933, 0.0072926647372171093, 0.00052484616099295468,
       3.4281021959525912e-05, 6.6478698711812354e-06, 1.2891731721515574e-06});
  const Llama3RopeScaling short_context{
      .factor = 4, .low_freq_factor = 1, .high_freq_factor = 4, .original_context_length = 64};
  const RotaryFrequencies got = rotary_frequencies(8, 10000, short_context);
  expect_frequencies(got, {1, 0.025464790894703257, 0.0025, 0.00025});
  EXPECT_EQ(got.attention_factor, 1);
}

TEST(RotaryFrequencies, YarnRampsOverPairsAndSharpensAttention) {
  YarnRopeScaling yarn{.factor = 4, .original_context_length = 2048};
  const RotaryFrequencies got = rotary_frequencies(16, 10000, yarn);
  expect_frequencies(got, {1, 0.31622776601683794, 0.1, 0.02569350598886808, 0.00625,
                           0.001383496476323666, 0.00025, 7.9056941504209485e-05});
  EXPECT_NEAR(got.attention_factor, 1.1386294361119891, 1e-15);
  yarn.attention_factor = 1.5;
  EXPECT_EQ(rotary_frequencies(16, 10000, yarn).attention_factor, 1.5);
}

TEST(RotaryFrequencies, YarnStepsBehindTheFirstPairWhereItsRampHasNoLength) {
  // Within four positions no pair turns once: the ramp begins and ends at pair 0.
  expect_frequencies(
      rotary_frequencies(8, 10000, YarnRopeScaling{.factor = 4, .original_context_length = 4}),
      {1, 0.1 / 4, 0.01 / 4, 0.001 / 4});
}

TEST(RotaryFrequencies, AFactorOfOneChangesNothing) {
  const std::vector<double> plain = rotary_frequencies(32, 10000).per_pair;
  const RopeScaling scalings[] = {LinearRopeScaling{1},
                                  Llama3RopeScaling{.factor = 1, .original_context_length = 100},
                                  YarnRopeScaling{.factor = 1, .original_context_length = 100}};
  for (const RopeScaling& scaling : scalings) {
    const RotaryFrequencies got = rotary_frequencies(32, 10000, scaling);
    expect_frequencies(got, plain);
    EXPECT_EQ(got.attention_factor, 1);
  }
}

TEST(RotaryFrequencies, SenselessNumbersAreRefused) {
  const RopeScaling bad[] = {
      LinearRopeScaling{0.5},
      LinearRopeScaling{std::numeric_limits<double>::quiet_NaN()},
      Llama3RopeScaling{.low_freq_factor = 4, .high_freq_factor = 4},
      Llama3RopeScaling{.low_freq_factor = 0},
      Llama3RopeScaling{.original_context_length = 0},
      YarnRopeScaling{.factor = 2},
      YarnRopeScaling{.factor = 2, .original_context_length = 64, .beta_fast = 1, .beta_slow = 2},
      YarnRopeScaling{.factor = 2, .original_context_length = 64, .attention_factor = 0}};
  for (const RopeScaling& scaling : bad) {
    EXPECT_THROW(rotary_frequencies(8, 10000, scaling), ConfigError);
  }
  EXPECT_THROW(rotary_frequencies(7, 10000), ConfigError);
  EXPECT_THROW(rotary_frequencies(8, 1), ConfigError);
}

TEST(RotaryTables, HoldTheAngleOfEveryPairTimesTheAttentionFactor) {
  YarnRopeScaling yarn{.factor = 2, .original_context_length = 16};
  yarn.attention_factor = 3;
  const auto [cosine, sine] = rotary_tables(5, 4, 100, yarn);
  const std::vector<double> frequencies = rotary_frequencies(4, 100, yarn).per_pair;
  ASSERT_EQ(cosine.shape(), "[5, 2]");
  ASSERT_EQ(sine.shape(), "[5, 2]");
  for (int64_t position = 0; position < 5; ++position) {
    for (int64_t i = 0; i < 2; ++i) {
      const double angle = static_cast<double>(position) * frequencies[static_cast<size_t>(i)];
      EXPECT_FLOAT_EQ(cosine.data<float>()[2 * position + i],
                      static_cast<float>(3 * std::cos(angle)));
      EXPECT_FLOAT_EQ(sine.data<float>()[2 * position + i],
                      static_cast<float>(3 * std::sin(angle)));
    }
  }
}

}  // namespace
}  // namespace lockstep::nn
