#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "tests/configs/examples.h"

namespace lockstep::config {
namespace {

/// Error, with its place, in the smallest config of an image classifier after `assignments`.
std::string classifier_problem(const std::vector<std::string>& assignments) {
  RunConfig config;
  Origins origins;
  merge_text(config, origins, kSmallestClassifier, "a");
  try {
    for (const std::string& assignment : assignments) set_value(config, origins, assignment);
    resolve(config, origins);
  } catch (const SourceError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Lora, DefaultsAreTheDocumentedOnesAndNoneIsChosen) {
  EXPECT_FALSE(load_text(kSmallestClassifier).model().has_lora());
  RunConfig config;
  Origins origins;
  merge_text(config, origins, kSmallestClassifier, "a");
  merge_text(config, origins, "model { lora {} }", "b");
  resolve(config, origins);
  const LoraConfig& lora = config.model().lora();
  EXPECT_EQ(lora.rank(), 8);
  EXPECT_EQ(lora.alpha(), 16);
  EXPECT_EQ(lora.dropout(), 0);
  ASSERT_EQ(lora.targets_size(), 1);
  EXPECT_EQ(lora.targets(0), "*");
}

TEST(Lora, RefusesValuesOutsideTheirRanges) {
  for (const char* wrong : {"model.lora.rank=0", "model.lora.alpha=0", "model.lora.dropout=1"}) {
    EXPECT_NE(classifier_problem({wrong}), "no error") << wrong;
  }
  EXPECT_EQ(
      classifier_problem({"model.lora.targets=[]"}),
      "--set model.lora.targets=[]: model.lora.targets is []: expected a pattern of the names "
      "of linear layers, such as \"*\".");
  EXPECT_EQ(
      classifier_problem({"model.lora.weights=a"}),
      "--set model.lora.weights=a: model.lora.weights needs model.weights: expected the folder of "
      "the model that the adapters were trained on.");
}

TEST(Freeze, APatternMustNotBeEmpty) {
  EXPECT_EQ(classifier_problem({"model.freeze=[\"fc\", \"\"]"}),
            "--set model.freeze=[\"fc\", \"\"]: model.freeze[1] is empty: expected a pattern of "
            "names, such as \"*.bias\".");
}

TEST(Resnet, DefaultsAreTheDocumentedOnes) {
  const ResnetConfig resnet = load_text(kSmallestClassifier).model().resnet();
  EXPECT_EQ(resnet.channels(), 3);
  EXPECT_EQ(resnet.base_width(), 64);
  EXPECT_EQ(std::vector<int64_t>(resnet.blocks().begin(), resnet.blocks().end()),
            std::vector<int64_t>({2, 2, 2, 2}));
  EXPECT_EQ(resnet.stem(), ResnetConfig::SMALL);
}

TEST(Resnet, NeedsAStage) {
  EXPECT_EQ(classifier_problem({"model.resnet.blocks=[]"}),
            "--set model.resnet.blocks=[]: model.resnet.blocks is []: expected at least one stage, "
            "as in [2, 2].");
  EXPECT_EQ(classifier_problem({"model.resnet.blocks=1"}), "no error");
}

TEST(Resnet, EveryStageNeedsABlockAndIsNamed) {
  EXPECT_EQ(
      classifier_problem({"model.resnet.blocks=2,2,0"}),
      "--set model.resnet.blocks=2,2,0: model.resnet.blocks[2] is 0: expected an integer from "
      "1 to 1000.");
}

TEST(Resnet, ChannelsOfTheLastStageAreBounded) {
  EXPECT_EQ(classifier_problem({"model.resnet.base_width=8192"}), "no error");
  EXPECT_EQ(classifier_problem({"model.resnet.base_width=8193"}),
            "--set model.resnet.base_width=8193: model.resnet.base_width is 8193 and doubles with "
            "each of 4 stages: expected at most 65536 channels in the last.");
  std::string many = "model.resnet.blocks=1";
  for (int i = 0; i < 100; ++i) many += ",1";
  EXPECT_NE(classifier_problem({many}), "no error");
}

TEST(Mlp, DefaultsAreTheDocumentedOnes) {
  const MlpConfig mlp = load_text(
                            "model { mlp { inputs: 4 classes: 2 } } data { random {} } "
                            "train { steps: 1 batch_size: 1 }")
                            .model()
                            .mlp();
  EXPECT_EQ(std::vector<int64_t>(mlp.hidden_widths().begin(), mlp.hidden_widths().end()),
            std::vector<int64_t>({128}));
  EXPECT_EQ(mlp.activation(), MlpConfig::RELU);
}

TEST(Sources, ClassifiersTakeRowsOrRandomData) {
  EXPECT_EQ(classifier_problem({"data.table.path=rows.csv"}), "no error");
  EXPECT_EQ(classifier_problem({"data.random={}"}), "no error");
  EXPECT_EQ(
      classifier_problem({"data.text.path=kjv.txt"}),
      "--set data.text.path=kjv.txt: data.text gives tokens, but model.resnet classifies rows "
      "of features: expected data.table or data.random.");
  EXPECT_EQ(
      classifier_problem({"model.mlp.inputs=4", "model.mlp.classes=2", "data.shards.train=a.bin"}),
      "--set data.shards.train=a.bin: data.shards gives tokens, but model.mlp classifies rows "
      "of features: expected data.table or data.random.");
}

TEST(Sources, LanguageModelsTakeTokens) {
  RunConfig config;
  Origins origins;
  merge_text(config, origins, kSmallest, "a");
  merge_text(config, origins, "data {\n  table { path: \"rows.csv\" }\n}", "b");
  try {
    resolve(config, origins);
    FAIL();
  } catch (const SourceError& e) {
    EXPECT_STREQ(e.what(),
                 "b:2:3: data.table gives rows of features, but model.gpt2 is a language model: "
                 "expected data.text, data.shards, data.mixture, data.examples, data.program or "
                 "data.random.");
  }
}

TEST(Table, NeedsAPathAndAPositiveScale) {
  EXPECT_EQ(classifier_problem({"data.table.path="}),
            "--set data.table.path=: data.table.path is empty: expected the path of a file.");
  EXPECT_EQ(classifier_problem({"data.table.path=a", "data.table.scale=0"}),
            "--set data.table.scale=0: data.table.scale is 0: expected a number above 0 and at "
            "most 10^30.");
}

}  // namespace
}  // namespace lockstep::config
