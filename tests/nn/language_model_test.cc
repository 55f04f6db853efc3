#include "nn/language_model.h"

#include <gtest/gtest.h>

#include "autograd/grad_mode.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/ops/factory.h"
#include "core/ops/reduce.h"
#include "core/ops/view.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"

namespace lockstep::nn {
namespace {

Gpt2Options small_gpt2() {
  Gpt2Options options;
  options.vocabulary = 17;
  options.context_length = 12;
  options.layers = 2;
  options.heads = 2;
  options.width = 8;
  return options;
}

LlamaOptions small_llama() {
  LlamaOptions options;
  options.vocabulary = 17;
  options.context_length = 12;
  options.layers = 2;
  options.heads = 4;
  options.kv_heads = 2;
  options.width = 16;
  options.hidden_width = 24;
  return options;
}

Tensor tokens(int64_t batch, int64_t length) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < batch * length; ++i) ids.push_back((i * 7 + 3) % 17);
  return tensor_from<int64_t>(ids, {batch, length});
}

class LanguageModelTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<LanguageModel> make() const {
    manual_seed(5);
    if (GetParam() == "gpt2") return std::make_unique<Gpt2>(small_gpt2());
    return std::make_unique<Llama>(small_llama());
  }
};

TEST_P(LanguageModelTest, LogitsHaveOneRowPerPosition) {
  const auto model = make();
  EXPECT_EQ(model->forward(tokens(3, 5)).shape(), "[3, 5, 17]");
}

TEST_P(LanguageModelTest, LogitsDependOnEarlierTokensOnly) {
  const NoGradGuard no_grad;
  const auto model = make();
  const Tensor longer = tokens(1, 9);
  const Tensor a = model->forward(longer).slice(1, 0, 4).contiguous();
  const Tensor b = model->forward(longer.slice(1, 0, 4).contiguous());
  for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-6);
}

TEST_P(LanguageModelTest, CachedForwardEqualsThePlainOne) {
  const NoGradGuard no_grad;
  const auto model = make();
  const Tensor all = tokens(2, 9);
  const Tensor plain = model->forward(all);
  KvCache cache(model->layers(), model->context_length());
  model->forward(all.slice(1, 0, 4).contiguous(), &cache);
  for (int64_t at = 4; at < 9; ++at) {
    const Tensor step = model->forward(all.slice(1, at, at + 1).contiguous(), &cache);
    const Tensor want = plain.slice(1, at, at + 1).contiguous();
    for (int64_t i = 0; i < want.numel(); ++i) {
      EXPECT_NEAR(step.data<float>()[i], want.data<float>()[i], 1e-5);
    }
  }
  EXPECT_EQ(cache.length(), 9);
}

TEST_P(LanguageModelTest, EveryParameterReceivesAGradient) {
  const auto model = make();
  sum_of_losses(*model, tokens(2, 6), tokens(2, 6)).backward();
  for (const NamedParameter& parameter : model->named_parameters()) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    EXPECT_EQ(parameter.tensor.grad().shape(), parameter.tensor.shape()) << parameter.name;
  }
}

TEST_P(LanguageModelTest, IgnoredTargetsDoNotCount) {
  const NoGradGuard no_grad;
  const auto model = make();
  const Tensor inputs = tokens(1, 6);
  Tensor targets = tokens(1, 6);
  const double whole = sum_of_losses(*model, inputs, targets).item<double>();
  targets.data<int64_t>()[5] = -100;
  const double part = sum_of_losses(*model, inputs, targets).item<double>();
  EXPECT_LT(part, whole);
  EXPECT_NEAR(
      part,
      sum_of_losses(*model, inputs.slice(1, 0, 5).contiguous(), targets.slice(1, 0, 5).contiguous())
          .item<double>(),
      1e-4);
}

TEST_P(LanguageModelTest, TooManyPositionsAreRefused) {
  const auto model = make();
  EXPECT_THROW(model->forward(tokens(1, 13)), ShapeError);
}

TEST_P(LanguageModelTest, HuggingFaceConfigDescribesTheSameModel) {
  const auto model = make();
  const auto again = model_from_hugging_face(model->hugging_face_config());
  ASSERT_EQ(again->named_parameters().size(), model->named_parameters().size());
  for (size_t i = 0; i < model->named_parameters().size(); ++i) {
    EXPECT_EQ(again->named_parameters()[i].name, model->named_parameters()[i].name);
    EXPECT_EQ(again->named_parameters()[i].tensor.shape(),
              model->named_parameters()[i].tensor.shape());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LanguageModelTest, testing::Values("gpt2", "llama"),
                         [](const auto& info) { return info.param; });

TEST(HuggingFaceConfig, NamesTheMissingKey) {
  try {
    model_from_hugging_face(R"({"model_type": "gpt2", "vocab_size": 4})");
    FAIL() << "nothing thrown";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("n_positions"), std::string::npos) << error.what();
  }
}

TEST(HuggingFaceConfig, RefusesWhatItWouldComputeDifferently) {
  EXPECT_THROW(model_from_hugging_face(R"({"model_type": "llama", "rope_scaling": {"type": "x"}})"),
               ConfigError);
  EXPECT_THROW(model_from_hugging_face(R"({"model_type": "bert"})"), ConfigError);
  EXPECT_THROW(model_from_hugging_face("{"), ConfigError);
}

TEST(Gpt2, DropoutActsInTrainingOnly) {
  manual_seed(5);
  Gpt2Options options = small_gpt2();
  options.dropout = 0.5;
  Gpt2 model(options);
  const NoGradGuard no_grad;
  const auto loss = [&] { return sum_of_losses(model, tokens(2, 6), tokens(2, 6)).item<double>(); };
  EXPECT_NE(loss(), loss());
  model.eval();
  EXPECT_EQ(loss(), loss());
}

TEST(Gpt2, ProjectionsAreStoredTransposed) {
  Gpt2 model(small_gpt2());
  int transposed = 0;
  for (const StoredParameter& parameter : model.stored_parameters()) {
    transposed += parameter.transposed ? 1 : 0;
    EXPECT_EQ(parameter.transposed, parameter.name.ends_with("c_attn.weight") ||
                                        parameter.name.ends_with("c_proj.weight") ||
                                        parameter.name.ends_with("c_fc.weight"))
        << parameter.name;
  }
  EXPECT_EQ(transposed, 8);
}

}  // namespace
}  // namespace lockstep::nn
