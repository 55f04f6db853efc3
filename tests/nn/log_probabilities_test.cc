// The log-probabilities of a sequence are the same bits however they are computed: what a sampler
// says of its own tokens is what a trainer finds for them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "core/device/exact_rows.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"
#include "kernels/cpu/matmul/onednn.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kPositions = 70;  // more than one block of keys
constexpr int64_t kScoredSequences = 64;
constexpr int64_t kScoredVocabulary = 101;

Gpt2Options gpt2_with_vocabulary(int64_t vocabulary) {
  Gpt2Options options;
  options.vocabulary = vocabulary;
  options.context_length = kPositions;
  options.layers = 2;
  options.heads = 2;
  options.width = 104;  // an inner width of 416, more than a piece of a sum
  return options;
}

LlamaOptions llama_with_shared_keys() {
  LlamaOptions options;
  options.vocabulary = kScoredVocabulary;
  options.context_length = kPositions;
  options.layers = 2;
  options.heads = 4;
  options.kv_heads = 2;
  options.width = 72;
  options.hidden_width = 400;
  return options;
}

struct ScoredModel {
  std::string name;
  std::function<std::unique_ptr<LanguageModel>()> make;
  std::optional<DType> autocast;
};

std::ostream& operator<<(std::ostream& out, const ScoredModel& one) { return out << one.name; }

class LogProbabilitiesTest : public testing::TestWithParam<ScoredModel> {
 protected:
  void SetUp() override {
    if (GetParam().autocast == DType::kBF16 && cpu::onednn::is_fast_in_bf16()) {
      GTEST_SKIP() << "the processor multiplies bf16 faster than f32: rows have other bits then "
                      "(docs/numerics.md)";
    }
  }
  LogProbabilitiesTest() : model_((manual_seed(11), GetParam().make())) {
    std::vector<int64_t> ids(static_cast<size_t>(kScoredSequences * (kPositions + 1)));
    for (size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<int64_t>((i * i * 31 + i * 7 + 3) % kScoredVocabulary);
    }
    const Tensor all = tensor_from<int64_t>(ids, {kScoredSequences, kPositions + 1});
    inputs_ = all.slice(1, 0, kPositions).contiguous();
    targets_ = all.slice(1, 1, kPositions + 1).contiguous();
  }

  AutocastGuard region() const {
    return AutocastGuard(DeviceType::kCPU, GetParam().autocast.has_value(),
                         GetParam().autocast.value_or(DType::kBF16));
  }

  /// Those of the first `count` sequences in a forward pass of training.
  std::vector<float> in_training(int64_t count) {
    const AutocastGuard guard = region();
    model_->train();
    return numbers(log_probabilities(*model_, inputs_.slice(0, 0, count).contiguous(),
                                     targets_.slice(0, 0, count).contiguous()));
  }

  static std::vector<float> numbers(const Tensor& tensor) {
    const Tensor values = tensor.detach().contiguous();
    EXPECT_EQ(values.dtype(), DType::kF32);
    return {values.data<float>(), values.data<float>() + values.numel()};
  }

  /// Of the first sequence, position by position: `logits_of(i)` ends with those at position i.
  std::vector<float> one_by_one(const std::function<Tensor(int64_t i)>& logits_of) {
    const NoGradGuard no_grad;
    const AutocastGuard guard = region();
    model_->eval();
    std::vector<Tensor> each;
    for (int64_t i = 0; i < kPositions; ++i) {
      const Tensor target = targets_.slice(0, 0, 1).slice(1, i, i + 1).reshape({1});
      each.push_back(log_probabilities(logits_of(i).select(1, -1).contiguous(), target));
    }
    return numbers(cat(each, 0));
  }

  ExactRows exact_rows_;
  std::unique_ptr<LanguageModel> model_;
  Tensor inputs_;
  Tensor targets_;
};

TEST_P(LogProbabilitiesTest, ASequenceHasTheSameOnesInABatchOfAnySize) {
  const std::vector<float> all = in_training(kScoredSequences);
  for (const int64_t count : {1, 2, 3, 5, 8, 13, 16, 33}) {
    EXPECT_THAT(in_training(count),
                testing::ElementsAreArray(all.begin(), all.begin() + count * kPositions))
        << count << " sequences";
  }
}

TEST_P(LogProbabilitiesTest, EvaluationHasThoseOfTraining) {
  const std::vector<float> trained = in_training(4);
  const NoGradGuard no_grad;
  const AutocastGuard guard = region();
  model_->eval();
  EXPECT_THAT(numbers(log_probabilities(*model_, inputs_.slice(0, 0, 1), targets_.slice(0, 0, 1))),
              testing::ElementsAreArray(trained.begin(), trained.begin() + kPositions));
}

TEST_P(LogProbabilitiesTest, GenerationWithACacheHasThoseOfTraining) {
  const std::vector<float> trained = in_training(4);
  KvCache cache(model_->layers(), kPositions);
  const auto cached = one_by_one([&](int64_t i) {
    return model_->forward(inputs_.slice(0, 0, 1).slice(1, i, i + 1).contiguous(), &cache);
  });
  EXPECT_THAT(cached, testing::ElementsAreArray(trained.begin(), trained.begin() + kPositions));
}

TEST_P(LogProbabilitiesTest, GenerationAfterAPromptHasThoseOfTraining) {
  const std::vector<float> trained = in_training(1);
  constexpr int64_t kPrompt = 37;
  KvCache cache(model_->layers(), kPositions);
  Tensor prompt;
  const auto cached = one_by_one([&](int64_t i) {
    const Tensor first = inputs_.slice(0, 0, 1);
    if (i == 0) prompt = model_->forward(first.slice(1, 0, kPrompt).contiguous(), &cache);
    if (i < kPrompt) return prompt.slice(1, 0, i + 1);
    return model_->forward(first.slice(1, i, i + 1).contiguous(), &cache);
  });
  EXPECT_THAT(cached, testing::ElementsAreArray(trained));
}

TEST_P(LogProbabilitiesTest, GenerationWithoutACacheHasThoseOfTraining) {
  const std::vector<float> trained = in_training(2);
  const auto computed = one_by_one([&](int64_t i) {
    return model_->forward(inputs_.slice(0, 0, 1).slice(1, 0, i + 1).contiguous());
  });
  EXPECT_THAT(computed, testing::ElementsAreArray(trained.begin(), trained.begin() + kPositions));
}

std::unique_ptr<LanguageModel> scored_gpt2() {
  return std::make_unique<Gpt2>(gpt2_with_vocabulary(kScoredVocabulary));
}
std::unique_ptr<LanguageModel> scored_llama() {
  return std::make_unique<Llama>(llama_with_shared_keys());
}

INSTANTIATE_TEST_SUITE_P(Models, LogProbabilitiesTest,
                         testing::Values(ScoredModel{"gpt2", scored_gpt2, {}},
                                         ScoredModel{"llama", scored_llama, {}},
                                         ScoredModel{"gpt2_bf16", scored_gpt2, DType::kBF16},
                                         ScoredModel{"llama_bf16", scored_llama, DType::kBF16},
                                         ScoredModel{"gpt2_f16", scored_gpt2, DType::kF16}),
                         [](const auto& each) { return each.param.name; });

// With this vocabulary the classifier is computed with the loss, in chunks of rows.
TEST(LogProbabilities, AreTheSameWhereLogitsAreComputedInChunks) {
  const ExactRows exact_rows;
  manual_seed(3);
  Gpt2 model(gpt2_with_vocabulary(16384));
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 8 * kPositions; ++i) ids.push_back(i * 977 % 16384);
  const Tensor tokens = tensor_from<int64_t>(ids, {8, kPositions});
  const Tensor many = log_probabilities(model, tokens, tokens).detach();
  const NoGradGuard no_grad;
  const Tensor logits = model.forward(tokens.slice(0, 7, 8).contiguous());
  const Tensor last =
      log_probabilities(logits.view({kPositions, 16384}), tokens.slice(0, 7, 8).reshape({-1}));
  for (int64_t i = 0; i < kPositions; ++i) {
    ASSERT_EQ(last.data<float>()[i], many.data<float>()[7 * kPositions + i]) << i;
  }
}

TEST(LogProbabilities, AreThoseOfTheSumOfLossesAndZeroWithoutATarget) {
  manual_seed(3);
  Gpt2 model(gpt2_with_vocabulary(kScoredVocabulary));
  const Tensor inputs = tensor_from<int64_t>({1, 2, 3, 4}, {1, 4});
  const Tensor targets = tensor_from<int64_t>({2, -100, 4, 5}, {1, 4});
  const Tensor each = log_probabilities(model, inputs, targets).detach();
  EXPECT_EQ(each.data<float>()[1], 0.0F);
  double sum = 0;
  for (int64_t i = 0; i < 4; ++i) sum -= static_cast<double>(each.data<float>()[i]);
  EXPECT_EQ(sum_of_losses(model, inputs, targets).item<float>(), static_cast<float>(sum));
}

}  // namespace
}  // namespace lockstep::nn
