#include "nn/language_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/dispatch/mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/loss/loss.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"
#include "nn/models/gpt2.h"
#include "nn/models/hugging_face.h"
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

/// Counts the results of operators that have as many elements as the logits of all targets.
struct WholeLogits : DispatchMode {
  int64_t elements;
  int found = 0;

  explicit WholeLogits(int64_t count) : elements(count) {}
  void call(const Operator& op, KeySet keys, Stack& stack) override {
    pass_on(op, keys, stack);
    for (const Value& result : stack.results()) {
      if (result.is_tensor() && result.tensor().numel() == elements) ++found;
    }
  }
};

int whole_logits_of_a_step(LanguageModel& model, const Tensor& inputs) {
  WholeLogits mode(inputs.numel() * model.vocabulary());
  const ModeGuard on(mode);
  sum_of_losses(model, inputs, inputs).backward();
  const NoGradGuard no_grad;
  sum_of_losses(model, inputs, inputs);
  return mode.found;
}

/// Models whose vocabulary is large: GPT-2, and Llama with its own classifier or the embedding's.
std::vector<std::unique_ptr<LanguageModel>> large_vocabularies() {
  manual_seed(5);
  Gpt2Options gpt2 = small_gpt2();
  LlamaOptions llama = small_llama();
  gpt2.vocabulary = llama.vocabulary = 16384;
  llama.width = 8;
  std::vector<std::unique_ptr<LanguageModel>> models;
  models.push_back(std::make_unique<Gpt2>(gpt2));
  for (const bool tied : {false, true}) {
    llama.tie_embeddings = tied;
    models.push_back(std::make_unique<Llama>(llama));
  }
  return models;
}

TEST(LargeVocabulary, HasNoLogitsOfAllTargetsInTrainingAndEvaluation) {
  const Tensor inputs = tokens(3, 12);
  for (const auto& model : large_vocabularies()) {
    EXPECT_EQ(whole_logits_of_a_step(*model, inputs), 0);
    const AutocastGuard region(DeviceType::kCPU);
    EXPECT_EQ(whole_logits_of_a_step(*model, inputs), 0);
  }
  Gpt2 small(small_gpt2());
  EXPECT_GT(whole_logits_of_a_step(small, inputs), 0) << "a small one has them";
}

TEST(LargeVocabulary, HasTheLossAndTheGradientsOfItsLogits) {
  const Tensor inputs = tokens(3, 12);
  for (const auto& model : large_vocabularies()) {
    const std::vector<Tensor> parameters = model->parameters();
    const Tensor loss = sum_of_losses(*model, inputs, inputs);
    const Tensor logits = model->forward(inputs);
    const Tensor wanted = cross_entropy_loss_reference(logits.reshape({-1, model->vocabulary()}),
                                                       inputs.reshape({-1}), {}, Reduction::kSum);
    EXPECT_NEAR(loss.item<double>(), wanted.item<double>(), 1e-4 * wanted.item<double>());
    const std::vector<Tensor> got = grad({loss}, parameters), expected = grad({wanted}, parameters);
    for (size_t i = 0; i < got.size(); ++i) {
      const double scale = max(abs(expected[i])).item<double>();
      EXPECT_LE(max(abs(got[i] - expected[i])).item<double>(), 1e-5 * scale + 1e-7);
    }
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

/// The config.json of a tiny Llama, with the members `more` added.
std::string llama_json(const std::string& more) {
  return R"({"model_type": "llama", "vocab_size": 17, "max_position_embeddings": 12,
             "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
             "num_attention_heads": 4)" +
         (more.empty() ? "" : ", " + more) + "}";
}

LlamaOptions options_of(const std::string& json) {
  return dynamic_cast<Llama&>(*model_from_hugging_face(json)).options();
}

TEST(HuggingFaceConfig, KeysThatAreLeftOutOrNullHaveTheFormatsDefaults) {
  for (const std::string& more :
       {std::string(), std::string(R"("num_key_value_heads": null, "rope_scaling": null,
                                      "head_dim": null, "rms_norm_eps": null)")}) {
    const LlamaOptions got = options_of(llama_json(more));
    EXPECT_EQ(got.kv_heads, 4);
    EXPECT_EQ(got.rope_theta, 10000);
    EXPECT_EQ(got.epsilon, 1e-6);
    EXPECT_FALSE(got.tie_embeddings);
    EXPECT_EQ(got.rope_scaling, RopeScaling());
  }
}

TEST(HuggingFaceConfig, RopeScalingIsReadAsItWasWritten) {
  const RopeScaling scalings[] = {
      {},
      LinearRopeScaling{2.5},
      Llama3RopeScaling{3, 0.5, 6, 77},
      YarnRopeScaling{.factor = 4, .original_context_length = 8},
      YarnRopeScaling{4, 8, 16, 2, 1.25},
  };
  for (const RopeScaling& scaling : scalings) {
    LlamaOptions options = small_llama();
    options.rope_scaling = scaling;
    options.rope_theta = 1234;
    const LlamaOptions got = options_of(Llama(options).hugging_face_config());
    EXPECT_EQ(got.rope_scaling, scaling) << scaling.index();
    EXPECT_EQ(got.rope_theta, 1234);
  }
}

TEST(HuggingFaceConfig, RopeScalingOfOlderAndNewerFilesIsRead) {
  EXPECT_EQ(
      options_of(llama_json(R"("rope_scaling": {"type": "linear", "factor": 2})")).rope_scaling,
      RopeScaling(LinearRopeScaling{2}));
  const LlamaOptions newer = options_of(llama_json(
      R"("rope_theta": 7, "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0,
         "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 8192})"));
  EXPECT_EQ(newer.rope_scaling, RopeScaling(Llama3RopeScaling()));
  EXPECT_EQ(newer.rope_theta, 500000);
  const LlamaOptions plain =
      options_of(llama_json(R"("rope_parameters": {"rope_type": "default", "rope_theta": 50})"));
  EXPECT_EQ(plain.rope_scaling, RopeScaling());
  EXPECT_EQ(plain.rope_theta, 50);
  // Without an original context length in the file, the model's own is used.
  const LlamaOptions yarn =
      options_of(llama_json(R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0})"));
  EXPECT_EQ(yarn.rope_scaling,
            RopeScaling(YarnRopeScaling{.factor = 4, .original_context_length = 12}));
}

std::string refusal_of(const std::string& json) {
  try {
    model_from_hugging_face(json);
    return "(nothing thrown)";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(HuggingFaceConfig, RefusesByNameWhatItWouldComputeDifferently) {
  const struct {
    const char* more;
    const char* says;
  } cases[] = {
      {R"("rope_scaling": {"type": "dynamic", "factor": 2})", "yarn, got dynamic"},
      {R"("rope_scaling": {"rope_type": "longrope"})", "got longrope"},
      {R"("rope_scaling": {"rope_type": "linear"})", "\"factor\" is missing"},
      {R"("rope_scaling": {"rope_type": "linear", "factor": 0.5})", "\"factor\" is 0.5"},
      {R"("rope_scaling": {"rope_type": "yarn", "factor": 2, "mscale": 1})", "\"mscale\""},
      {R"("rope_scaling": {"rope_type": "yarn", "factor": 2, "truncate": false})", "\"truncate\""},
      {R"("rope_scaling": 3)", "is no object: got 3"},
      {R"("rope_scaling": {"factor": 2}, "rope_parameters": {"factor": 3})", "differ"},
      {R"("head_dim": 8)", "\"head_dim\" is not supported: expected 4, got 8"},
      {R"("attention_bias": true)", "\"attention_bias\""},
      {R"("mlp_bias": true)", "\"mlp_bias\""},
      {R"("hidden_act": "gelu")", "\"hidden_act\""},
      {R"("partial_rotary_factor": 0.5)", "\"partial_rotary_factor\""},
      {R"("num_attention_heads": 3)", "does not divide"},
      {R"("num_key_value_heads": 3)", "does not divide"},
      {R"("num_attention_heads": 0)", "\"num_attention_heads\" is 0"},
      {R"("num_hidden_layers": -1)", "\"num_hidden_layers\" is -1"},
      {R"("num_attention_heads": 16)", "even width, got 1"},
      {R"("vocab_size": "many")", "cannot be read"},
  };
  for (const auto& [more, says] : cases) {
    const std::string message = refusal_of(llama_json(more));
    EXPECT_NE(message.find(says), std::string::npos) << more << " -> " << message;
  }
  EXPECT_NE(refusal_of(R"({"model_type": "bert"})").find("got bert"), std::string::npos);
  EXPECT_NE(refusal_of("{").find("cannot be read"), std::string::npos);
  const std::string gpt2 = R"({"model_type": "gpt2", "vocab_size": 4, "n_positions": 4, "n_embd": 4,
                               "n_layer": 1, "n_head": 2, "n_inner": 8})";
  EXPECT_NE(refusal_of(gpt2).find("\"n_inner\""), std::string::npos);
}

TEST(HuggingFaceConfig, DeepNestingIsRefused) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text = R"({"model_type": "gpt2", "extra": )";
    for (int i = 0; i < 1'000'000; ++i) text += open;
    EXPECT_NE(refusal_of(text).find("nested deeper than 64"), std::string::npos);
  }
}

TEST(HuggingFaceConfig, SizesThatNoModelHasAreRefusedBeforeAnythingIsAllocated) {
  const struct {
    const char* more;
    const char* says;
  } cases[] = {
      {R"("num_key_value_heads": 1e300)", "\"num_key_value_heads\" cannot be read"},
      {R"("num_key_value_heads": 1.5)", "expected a whole number, got 1.5"},
      {R"("num_key_value_heads": 18446744073709551615)", "expected a whole number"},
      {R"("vocab_size": 4000000000)", "\"vocab_size\" is 4000000000: expected at most 16777216"},
      {R"("max_position_embeddings": 1048577)", "expected at most 1048576"},
      {R"("num_hidden_layers": 2147483647)", "expected at most 10000"},
      {R"("num_hidden_layers": true)", "expected a whole number, got true"},
      {R"("rms_norm_eps": true)", "\"rms_norm_eps\" cannot be read: expected a number, got true"},
      {R"("rms_norm_eps": 0)", "\"rms_norm_eps\" is 0: expected above 0 and at most 1"},
      {R"("rope_theta": -1)", "\"rope_theta\" is -1: expected above 1"},
      {R"("tie_word_embeddings": 1)", "expected true or false, got 1"},
      {R"("rope_scaling": {"rope_type": "linear", "factor": 1e9})", "\"factor\" is 1000000000"},
      {R"("rope_scaling": {"rope_type": "linear", "factor": "2"})", "expected a number, got \"2\""},
      {R"("rope_scaling": {"rope_type": 2})", "\"rope_type\" cannot be read: expected a text"},
  };
  for (const auto& [more, says] : cases) {
    const std::string message = refusal_of(llama_json(more));
    EXPECT_NE(message.find(says), std::string::npos) << more << " -> " << message;
  }
}

TEST(HuggingFaceConfig, AModelFarLargerThanItsWeightsIsRefused) {
  const auto refusal = [](const std::string& json, const WeightsSize& weights) -> std::string {
    try {
      model_from_hugging_face(json, weights);
      return "(nothing thrown)";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  const WeightsSize small{.tensors = 12, .elements = 5000};
  EXPECT_EQ(refusal(llama_json(""), small), "(nothing thrown)");
  EXPECT_NE(
      refusal(llama_json(R"("vocab_size": 16000000)"), small).find("elements: expected about 5000"),
      std::string::npos);
  EXPECT_NE(refusal(llama_json(R"("num_hidden_layers": 5000)"), small)
                .find("5000 layers, but the weights beside it are 12 tensors"),
            std::string::npos);
  const std::string gpt2 = R"({"model_type": "gpt2", "vocab_size": 4, "n_positions": 4,
                               "n_embd": 1000000, "n_layer": 1, "n_head": 2})";
  EXPECT_NE(refusal(gpt2, small).find("elements: expected about 5000"), std::string::npos);
}

TEST(Llama, RopeScalingTurnsEveryPositionButTheFirst) {
  const NoGradGuard no_grad;
  const auto logits = [](const RopeScaling& scaling) {
    LlamaOptions options = small_llama();
    options.rope_scaling = scaling;
    manual_seed(5);
    return Llama(options).forward(tokens(1, 6)).contiguous();
  };
  const Tensor plain = logits({});
  const RopeScaling scalings[] = {
      LinearRopeScaling{4}, Llama3RopeScaling{.original_context_length = 6},
      YarnRopeScaling{.factor = 4, .original_context_length = 300, .attention_factor = 1}};
  for (const RopeScaling& scaling : scalings) {
    const Tensor scaled = logits(scaling);
    for (int64_t position = 0; position < 6; ++position) {
      double difference = 0;
      for (int64_t i = 0; i < 17; ++i) {
        const int64_t at = 17 * position + i;
        difference += std::abs(scaled.data<float>()[at] - plain.data<float>()[at]);
      }
      EXPECT_EQ(difference > 0, position > 0) << scaling.index() << " at " << position;
    }
  }
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
