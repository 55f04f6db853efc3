#include "train/generate.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/tensor/generator.h"
#include "nn/models/gpt2.h"

namespace lockstep::train {
namespace {

class GenerateTest : public testing::Test {
 protected:
  static nn::Gpt2Options small() {
    nn::Gpt2Options options;
    options.vocabulary = 13;
    options.context_length = 8;
    options.layers = 1;
    options.heads = 2;
    options.width = 8;
    return options;
  }
  GenerateTest() : seeded_((manual_seed(3), true)), model_(small()) {}

  bool seeded_;
  nn::Gpt2 model_;
};

TEST_F(GenerateTest, TheSameSeedGivesTheSameTokens) {
  GenerateOptions options{.max_new_tokens = 40, .seed = 7};
  const auto first = generate(model_, {1, 2}, options);
  EXPECT_EQ(first.size(), 40u);
  EXPECT_EQ(first, generate(model_, {1, 2}, options));
  options.seed = 8;
  EXPECT_NE(first, generate(model_, {1, 2}, options));
}

TEST_F(GenerateTest, GoesOnBeyondTheContext) {
  const auto tokens = generate(model_, {1}, {.max_new_tokens = 50});
  for (const int64_t token : tokens) EXPECT_TRUE(token >= 0 && token < 13);
}

TEST_F(GenerateTest, ALongPromptCountsByItsEnd) {
  const std::vector<int64_t> end = {4, 5, 6, 7, 8, 9, 10, 11};
  std::vector<int64_t> longer = {1, 2, 3};
  longer.insert(longer.end(), end.begin(), end.end());
  const GenerateOptions options{.max_new_tokens = 5};
  EXPECT_EQ(generate(model_, longer, options), generate(model_, end, options));
}

TEST_F(GenerateTest, TopOneEqualsTemperatureZero) {
  EXPECT_EQ(generate(model_, {1}, {.max_new_tokens = 20, .temperature = 0}),
            generate(model_, {1}, {.max_new_tokens = 20, .top_k = 1}));
}

TEST_F(GenerateTest, EachTokenIsReportedAsItComes) {
  std::vector<int64_t> seen;
  const auto tokens =
      generate(model_, {1}, {.max_new_tokens = 6}, [&](int64_t token) { seen.push_back(token); });
  EXPECT_EQ(seen, tokens);
}

TEST_F(GenerateTest, BadPromptsAreRefused) {
  EXPECT_THROW(generate(model_, {}, {}), DataError);
  EXPECT_THROW(generate(model_, {13}, {}), DataError);
}

}  // namespace
}  // namespace lockstep::train
