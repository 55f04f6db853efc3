#include "train/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>

#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/device/exact_rows.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/generator.h"
#include "nn/models/gpt2.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"

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

TEST_F(GenerateTest, TokensThatNoTokenizerKnowsAreNotDrawn) {
  const auto tokens = generate(model_, {1}, {.max_new_tokens = 60, .vocabulary = 5});
  EXPECT_EQ(*std::ranges::max_element(tokens), 4);
  EXPECT_EQ(generate(model_, {1}, {.max_new_tokens = 9, .vocabulary = 99}),
            generate(model_, {1}, {.max_new_tokens = 9}));
}

TEST_F(GenerateTest, ATextEndsWithTheTokenThatEndsTexts) {
  const GenerateOptions whole{.max_new_tokens = 40, .seed = 7};
  const auto tokens = generate(model_, {1, 2}, whole);
  const int64_t end = tokens[20];
  const auto first = std::ranges::find(tokens, end);
  std::vector<float> log_probabilities;
  GenerateOptions options = whole;
  options.end = end;
  options.log_probabilities = &log_probabilities;
  std::vector<int64_t> seen;
  const auto ended =
      generate(model_, {1, 2}, options, [&](int64_t token) { seen.push_back(token); });
  EXPECT_EQ(ended, std::vector<int64_t>(tokens.begin(), first + 1));
  EXPECT_EQ(seen, std::vector<int64_t>(tokens.begin(), first)) << "the end is no part of the text";
  EXPECT_EQ(log_probabilities.size(), ended.size());
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

TEST_F(GenerateTest, TokensAreDrawnWithTheProbabilitiesOfTheLikeliestAtTheTemperature) {
  const std::vector<int64_t> prompt = {1, 2};
  std::vector<float> logits;
  {
    const NoGradGuard no_grad;
    model_.eval();
    const Tensor last =
        model_.forward(tensor_from<int64_t>(prompt, {1, 2}), nullptr).select(1, -1).contiguous();
    logits.assign(last.data<float>(), last.data<float>() + last.numel());
  }
  std::vector<float> sorted = logits;
  std::ranges::sort(sorted, std::greater());
  // Chosen so that the third likeliest token is half as likely as the first.
  const double temperature = (sorted[0] - sorted[2]) / std::numbers::ln2;
  constexpr int kDraws = 2000;
  for (const int64_t top_k : {0, 3, 100}) {
    const float lowest = top_k == 3 ? sorted[2] : sorted.back();
    const auto weight = [&](float logit) {
      return logit < lowest ? 0 : std::exp((logit - sorted[0]) / temperature);
    };
    double total = 0;
    for (const float logit : logits) total += weight(logit);
    std::vector<int> drawn(logits.size());
    for (uint64_t seed = 0; seed < kDraws; ++seed) {
      const GenerateOptions options{
          .max_new_tokens = 1, .temperature = temperature, .top_k = top_k, .seed = seed};
      ++drawn[static_cast<size_t>(generate(model_, prompt, options)[0])];
    }
    for (size_t token = 0; token < logits.size(); ++token) {
      const double expected = weight(logits[token]) / total;
      if (expected == 0) {
        EXPECT_EQ(drawn[token], 0) << token;
      }
      // Five standard deviations at most.
      EXPECT_NEAR(drawn[token] / double{kDraws}, expected, 5 * std::sqrt(0.25 / kDraws)) << token;
    }
  }
}

TEST_F(GenerateTest, SaysTheLogProbabilitiesThatTrainingFindsForItsTokens) {
  const ExactRows exact_rows;
  const std::vector<int64_t> prompt = {1, 2};
  std::vector<float> told;
  std::vector<int64_t> all = prompt;
  const auto drawn =
      generate(model_, prompt, {.max_new_tokens = 6, .top_k = 3, .log_probabilities = &told});
  all.insert(all.end(), drawn.begin(), drawn.end());
  model_.train();
  const Tensor found =
      nn::log_probabilities(model_, tensor_from<int64_t>(std::span(all).first(7), {1, 7}),
                            tensor_from<int64_t>(std::span(all).last(7), {1, 7}))
          .detach();
  EXPECT_THAT(told, testing::ElementsAreArray(found.data<float>() + 1, 6));
}

TEST_F(GenerateTest, EachTokenIsReportedAsItComes) {
  std::vector<int64_t> seen;
  const auto tokens =
      generate(model_, {1}, {.max_new_tokens = 6}, [&](int64_t token) { seen.push_back(token); });
  EXPECT_EQ(seen, tokens);
}

/// The message of the NonFiniteError that generating a token gives.
std::string refusal(nn::Gpt2& model) {
  try {
    generate(model, {1, 2}, {.max_new_tokens = 1});
  } catch (const NonFiniteError& error) {
    return error.what();
  }
  return "no error";
}

void set_all(nn::Gpt2& model, std::string_view name, double value) {
  const NoGradGuard no_grad;
  for (const nn::NamedParameter& each : model.named_parameters()) {
    if (each.name == name) each.tensor.fill_(value);
  }
}

TEST_F(GenerateTest, LogitsFromANanParameterAreAnErrorThatNamesIt) {
  set_all(model_, "h.0.mlp.c_fc.bias", NAN);
  EXPECT_THAT(
      refusal(model_),
      testing::HasSubstr("parameter h.0.mlp.c_fc.bias holds 32 numbers that are not finite"));
  EXPECT_TRUE(model_.is_training());
}

TEST_F(GenerateTest, LogitsThatOverflowAreAnErrorThatNamesTheLayer) {
  set_all(model_, "h.0.ln_2.weight", 1e30);
  set_all(model_, "h.0.mlp.c_fc.weight", 1e30);
  set_all(model_, "h.0.mlp.c_fc.bias", 3e38);
  EXPECT_THAT(refusal(model_), testing::HasSubstr("layer h.0.mlp.c_fc computed numbers"));
}

TEST_F(GenerateTest, BadPromptsAreRefused) {
  expect_error<DataError>([&] { generate(model_, {}, {}); }, "[generate] the prompt is empty");
  for (const int64_t token : {-1, 13}) {
    expect_error<DataError>(
        [&] {
          generate(model_, {2, token}, {});
        },
        "expected one in [0, 13), got " + std::to_string(token));
  }
}

TEST_F(GenerateTest, ATemperatureThatIsNoNumberIsRefused) {
  for (const double temperature : {kInfinity, -kInfinity, kNaN}) {
    expect_error<ConfigError>([&] { generate(model_, {2}, {.temperature = temperature}); },
                              "[generate] the temperature must be a finite number, got");
  }
}

}  // namespace
}  // namespace lockstep::train
