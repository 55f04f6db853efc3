// The rule of muP, and models that follow it.

#include "nn/scaling/mup.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"
#include "tests/core/expect_error.h"

namespace lockstep::nn {
namespace {

constexpr Mup kWider{.width = 4, .head_width = 2, .input_multiplier = 3, .output_multiplier = 0.7};

TEST(Mup, TheBaseModelHasNoFactors) {
  const Mup base;
  EXPECT_TRUE(base.is_plain());
  EXPECT_EQ(base.attention_scale(48), std::nullopt);
  for (const WidthRole role : {WidthRole::kMatrix, WidthRole::kVector}) {
    EXPECT_EQ(base.deviation_of(role), 1);
    for (const UpdateKind kind :
         {UpdateKind::kElementwise, UpdateKind::kGradient, UpdateKind::kOrthogonal}) {
      EXPECT_EQ(base.update_of(role, kind).rate, 1);
      EXPECT_EQ(base.update_of(role, kind).decay, 1);
    }
  }
}

TEST(Mup, AWiderModelHasTheFactorsOfThePaper) {
  const Mup mup{.width = 4, .head_width = 4};
  EXPECT_EQ(mup.deviation_of(WidthRole::kMatrix), 0.5);
  EXPECT_EQ(mup.deviation_of(WidthRole::kVector), 1);
  EXPECT_EQ(mup.features_factor(), 0.25);
  // 1 / sqrt(16) of the base model's heads, which become 64 wide, times 1 / 4.
  EXPECT_EQ(mup.attention_scale(64), std::sqrt(16.0) / 64);
  EXPECT_EQ(mup.update_of(WidthRole::kMatrix, UpdateKind::kElementwise).rate, 0.25);
  EXPECT_EQ(mup.update_of(WidthRole::kVector, UpdateKind::kElementwise).rate, 1);
  EXPECT_EQ(mup.update_of(WidthRole::kMatrix, UpdateKind::kGradient).rate, 1);
  EXPECT_EQ(mup.update_of(WidthRole::kVector, UpdateKind::kGradient).rate, 4);
  EXPECT_EQ(mup.update_of(WidthRole::kMatrix, UpdateKind::kOrthogonal).rate, 1);
}

TEST(Mup, WhatAStepDecaysDoesNotFollowTheWidth) {
  const Mup mup{.width = 8};
  for (const WidthRole role : {WidthRole::kMatrix, WidthRole::kVector}) {
    for (const UpdateKind kind :
         {UpdateKind::kElementwise, UpdateKind::kGradient, UpdateKind::kOrthogonal}) {
      const UpdateFactors factors = mup.update_of(role, kind);
      EXPECT_EQ(factors.rate * factors.decay, 1);
    }
  }
}

/// A model of each kind, with one seed.
struct Kind {
  const char* name;
  std::unique_ptr<LanguageModel> (*make)(const Mup& mup);
};

std::unique_ptr<LanguageModel> make_gpt2(const Mup& mup) {
  return std::make_unique<Gpt2>(Gpt2Options{
      .vocabulary = 17, .context_length = 12, .layers = 2, .heads = 2, .width = 16, .mup = mup});
}

template <bool tied>
std::unique_ptr<LanguageModel> make_llama(const Mup& mup) {
  return std::make_unique<Llama>(LlamaOptions{.vocabulary = 17,
                                              .context_length = 12,
                                              .layers = 2,
                                              .heads = 2,
                                              .kv_heads = 1,
                                              .width = 16,
                                              .hidden_width = 24,
                                              .tie_embeddings = tied,
                                              .mup = mup});
}

class MupModels : public testing::TestWithParam<Kind> {
 protected:
  static std::unique_ptr<LanguageModel> make(const Mup& mup) {
    default_generator().manual_seed(5);
    return GetParam().make(mup);
  }
  static Tensor tokens() {
    const Tensor ids = empty({2, 9}, DType::kI64);
    for (int64_t i = 0; i < ids.numel(); ++i) ids.data<int64_t>()[i] = i * 7 % 17;
    return ids;
  }
  /// Large weights, so that attention and multipliers matter for the logits.
  static void enlarge(LanguageModel& model) {
    const NoGradGuard no_grad;
    for (const Tensor& each : model.parameters()) each.mul_(4);
  }
};

double largest(const Tensor& tensor) { return max(abs(tensor)).item<double>(); }

TEST_P(MupModels, MatricesOfTheBlocksBeginSmallerAndNothingElseDoes) {
  const NoGradGuard no_grad;
  const auto base = make({}), wider = make({.width = 16});
  const auto of_base = base->named_parameters(), of_wider = wider->named_parameters();
  ASSERT_EQ(of_base.size(), of_wider.size());
  for (size_t i = 0; i < of_base.size(); ++i) {
    const std::string& name = of_base[i].name;
    const bool in_block = name.starts_with("h.") || name.starts_with("model.layers.");
    const bool is_matrix = in_block && of_base[i].tensor.dim() == 2;
    const Tensor expected = of_base[i].tensor * (is_matrix ? 0.25 : 1.0);
    EXPECT_LE(largest(of_wider[i].tensor - expected), 1e-9) << name;
  }
}

TEST_P(MupModels, AModelWithoutMultipliersComputesTheSame) {
  const NoGradGuard no_grad;
  const auto model = make(kWider);
  enlarge(*model);
  const Tensor with = model->forward(tokens()).clone();
  change_multipliers(*model, {});
  EXPECT_TRUE(model->mup().is_plain());
  const Tensor without = model->forward(tokens());
  EXPECT_LE(largest(with - without), 1e-5 * largest(with));
  model->use_multipliers(kWider);  // the weights are others now
  EXPECT_GT(largest(with - model->forward(tokens())), 1e-2 * largest(with));
}

TEST_P(MupModels, MultipliersAreTakenBack) {
  const NoGradGuard no_grad;
  const auto model = make(kWider);
  enlarge(*model);
  const Tensor before = model->forward(tokens()).clone();
  change_multipliers(*model, {.width = 2, .input_multiplier = 0.5});
  change_multipliers(*model, kWider);
  EXPECT_LE(largest(before - model->forward(tokens())), 1e-5 * largest(before));
}

TEST_P(MupModels, EachMultiplierChangesTheLogits) {
  const NoGradGuard no_grad;
  const auto model = make({});
  enlarge(*model);
  const Tensor plain = model->forward(tokens()).clone();
  for (const Mup& mup : {Mup{.width = 2}, Mup{.head_width = 4}, Mup{.input_multiplier = 2},
                         Mup{.output_multiplier = 2}}) {
    model->use_multipliers(mup);
    EXPECT_GT(largest(plain - model->forward(tokens())), 1e-3 * largest(plain));
  }
  model->use_multipliers({.output_multiplier = 2});
  EXPECT_LE(largest(plain * 2 - model->forward(tokens())), 1e-5 * largest(plain));
}

TEST_P(MupModels, CachedForwardEqualsThePlainOne) {
  const NoGradGuard no_grad;
  const auto model = make(kWider);
  enlarge(*model);
  const Tensor all = tokens();
  const Tensor plain = model->forward(all);
  KvCache cache(model->layers(), model->context_length());
  model->forward(all.slice(1, 0, 8).contiguous(), &cache);
  const Tensor step = model->forward(all.slice(1, 8, 9).contiguous(), &cache);
  EXPECT_LE(largest(step - plain.slice(1, 8, 9)), 1e-5 * largest(plain));
}

INSTANTIATE_TEST_SUITE_P(Models, MupModels,
                         testing::Values(Kind{"gpt2", make_gpt2}, Kind{"llama", make_llama<false>},
                                         Kind{"llama_tied", make_llama<true>}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lockstep::nn
