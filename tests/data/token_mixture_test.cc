#include "data/token_mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/data/stub_tokenizer.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMixedLength = 4;

/// Tokens first, first + 1, ... as one part with that name.
TokenPart run_of_tokens(const std::string& name, uint32_t first, uint32_t count) {
  std::vector<uint32_t> ids(count);
  for (uint32_t i = 0; i < count; ++i) ids[i] = first + i;
  return {name, TokenArray::copy_of(ids)};
}

/// Three sources of 1, 3 and 4 parts of 8: tokens from 0, from 1000 and from 2000 on.
TokenMixture mixture_of_three(WindowOrder order, uint64_t seed = 5, double weight = 1) {
  std::vector<TokenMixture::Source> sources;
  for (const uint32_t i : {0U, 1U, 2U}) {
    TokenDataOptions options;
    options.vocabulary = 4000;
    options.seed = TokenMixture::seed_of_source(seed, i);
    options.order = order;
    sources.push_back({std::make_unique<TokenData>(
                           std::vector{run_of_tokens("part" + std::to_string(i), 1000 * i, 401)},
                           std::vector{run_of_tokens("held", 3000 + 100 * i, 6 + i)}, options),
                       i == 0 ? weight : i + 2.0});
  }
  return {std::move(sources), seed, /*sequences_per_step=*/8};
}

std::vector<int64_t> first_tokens(const TokenMixture& mixture, int64_t step, int64_t count = 8) {
  std::vector<int64_t> firsts;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> inputs(kMixedLength), targets(kMixedLength);
    mixture.sequence(step, i, inputs, targets);
    for (int64_t t = 0; t < kMixedLength; ++t) {
      EXPECT_EQ(inputs[static_cast<size_t>(t)], inputs[0] + t);
      EXPECT_EQ(targets[static_cast<size_t>(t)], inputs[0] + t + 1);
    }
    firsts.push_back(inputs[0]);
  }
  return firsts;
}

TEST(TokenMixture, SequencesComeInProportionToTheWeights) {
  const TokenMixture mixture = mixture_of_three(WindowOrder::kRandom);
  std::vector<int> taken(3);
  for (int64_t step = 0; step < 100; ++step) {
    for (const int64_t first : first_tokens(mixture, step))
      ++taken[static_cast<size_t>(first / 1000)];
  }
  EXPECT_NEAR(taken[0], 100, 3);
  EXPECT_NEAR(taken[1], 300, 3);
  EXPECT_NEAR(taken[2], 400, 3);
}

TEST(TokenMixture, AStepIsTheSameWhateverCameBefore) {
  for (const WindowOrder order : {WindowOrder::kRandom, WindowOrder::kShuffled}) {
    const TokenMixture mixture = mixture_of_three(order), resumed = mixture_of_three(order);
    std::vector<std::vector<int64_t>> steps;
    for (int64_t step = 0; step < 20; ++step) steps.push_back(first_tokens(mixture, step));
    for (int64_t step = 19; step >= 0; --step) {
      EXPECT_EQ(first_tokens(resumed, step), steps[static_cast<size_t>(step)]);
    }
    EXPECT_NE(first_tokens(mixture_of_three(order, 6), 3), steps[3]);
  }
}

TEST(TokenMixture, AShuffledSourceIsReadOnceInEachOfItsEpochs) {
  const TokenMixture mixture = mixture_of_three(WindowOrder::kShuffled);
  // 100 windows of each source: the second has 3 of 8 sequences.
  std::multiset<int64_t> second;
  for (int64_t step = 0; step < 34; ++step) {
    for (const int64_t first : first_tokens(mixture, step)) {
      if (first / 1000 == 1 && second.size() < 100) second.insert(first);
    }
  }
  ASSERT_EQ(second.size(), 100U);
  EXPECT_EQ(std::set<int64_t>(second.begin(), second.end()).size(), 100U);
}

TEST(TokenMixture, OriginsNameTheSourceAndTheTokenThere) {
  const TokenMixture mixture = mixture_of_three(WindowOrder::kRandom);
  const std::vector<int64_t> firsts = first_tokens(mixture, 7);
  const std::vector<SampleOrigin> origins = mixture.origins(7, 8, kMixedLength);
  ASSERT_EQ(origins.size(), 8U);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(origins[i].file, "part" + std::to_string(firsts[i] / 1000));
    EXPECT_EQ(origins[i].first, firsts[i] % 1000);
  }
}

TEST(TokenMixture, AllThatIsHeldOutIsValidatedOn) {
  const TokenMixture mixture = mixture_of_three(WindowOrder::kRandom);
  EXPECT_EQ(mixture.validation_windows(1), 5 + 6 + 7);
  ASSERT_EQ(mixture.validation_windows(kMixedLength), 2 + 2 + 2);
  std::vector<int64_t> begins, counts;
  for (int64_t i = 0; i < 6; ++i) {
    std::vector<int64_t> inputs(kMixedLength), targets(kMixedLength);
    counts.push_back(mixture.validation_window(i, inputs, targets));
    begins.push_back(inputs[0]);
  }
  EXPECT_THAT(begins, ElementsAre(3000, 3004, 3100, 3104, 3200, 3204));
  EXPECT_THAT(counts, ElementsAre(4, 1, 4, 2, 4, 3));
}

TEST(TokenMixture, BytesPerHeldOutTokenAreThoseOfAllItsHeldOutTokens) {
  std::vector<TokenMixture::Source> sources;
  // Two targets of 2 bytes and six of 8 bytes; the third source holds nothing out.
  for (const std::vector<uint32_t>& held :
       {std::vector<uint32_t>{5, 2, 2}, std::vector<uint32_t>{7, 8, 8, 8, 8, 8, 8}, {}}) {
    TokenDataOptions options;
    options.vocabulary = 256;
    options.tokenizer = std::make_shared<StubTokenizer>(true);
    sources.push_back({std::make_unique<TokenData>(
                           std::vector{run_of_tokens("part", 1, 9)},
                           std::vector<TokenPart>{{"held", TokenArray::copy_of(held)}}, options),
                       5.0});
  }
  const TokenMixture mixture(std::move(sources), 1, 8);
  EXPECT_EQ(mixture.held_out_bytes_per_token(), (2 * 2 + 6 * 8) / 8.0);
}

TEST(TokenMixture, WeightsArePartOfTheFingerprint) {
  const TokenMixture one = mixture_of_three(WindowOrder::kRandom);
  const TokenMixture other = mixture_of_three(WindowOrder::kRandom, 5, 1.5);
  EXPECT_NE(one.fingerprint(), other.fingerprint());
  EXPECT_NE(one.identity(), other.identity());
  EXPECT_EQ(one.identity(), mixture_of_three(WindowOrder::kRandom).identity());
}

}  // namespace
}  // namespace lockstep::train
