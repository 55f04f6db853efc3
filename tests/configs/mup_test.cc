// model.mup: defaults, and what is refused.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "tests/configs/examples.h"

namespace lockstep::config {
namespace {

/// The problem of the smallest config, of width 4 with 2 heads, after `assignments`.
std::string mup_problem(const std::vector<std::string>& assignments) {
  try {
    (void)smallest_with(assignments);
  } catch (const SourceError& error) {
    return error.problem();
  }
  return "no error";
}

TEST(MupConfigs, DefaultsAreTheDocumentedOnes) {
  EXPECT_FALSE(load_text(kSmallest).model().has_mup());
  const MupConfig mup = smallest_with({"model.mup.base_width=2"}).model().mup();
  EXPECT_EQ(mup.base_width(), 2);
  EXPECT_EQ(mup.base_heads(), 2);  // those of the model
  EXPECT_EQ(mup.input_multiplier(), 1);
  EXPECT_EQ(mup.output_multiplier(), 1);
}

TEST(MupConfigs, ABaseModelMayBeWider) {
  EXPECT_EQ(smallest_with({"model.mup.base_width=8"}).model().mup().base_width(), 8);
}

TEST(MupConfigs, ABaseWidthIsRequired) {
  EXPECT_EQ(mup_problem({"model.mup={}"}),
            "model.mup.base_width is required: expected base_width: an integer from 1 to 2^20. Set "
            "it in the file or with --set.");
  EXPECT_EQ(mup_problem({"model.mup.base_width=0"}),
            "model.mup.base_width is 0: expected an integer from 1 to 2^20.");
}

TEST(MupConfigs, ValuesOutsideTheirRangesAreRefused) {
  for (const char* wrong : {"base_width=1048577", "base_heads=0", "input_multiplier=0",
                            "output_multiplier=-1", "output_multiplier=1e7"}) {
    EXPECT_NE(mup_problem({"model.mup.base_width=2", std::string("model.mup.") + wrong}),
              "no error")
        << wrong;
  }
}

TEST(MupConfigs, TheBaseModelsHeadsMustDivideItsWidth) {
  EXPECT_EQ(mup_problem({"model.mup.base_width=3"}),
            "model.mup.base_width is 3, which the base model's heads do not divide: expected a "
            "multiple of model.mup.base_heads, which is 2. Set base_heads to the heads of the base "
            "model.");
  EXPECT_EQ(mup_problem({"model.mup.base_width=3", "model.mup.base_heads=1"}), "no error");
}

TEST(MupConfigs, OnlyTransformersHaveAWidth) {
  RunConfig config;
  Origins origins;
  merge_text(config, origins, kSmallestClassifier, "a");
  set_value(config, origins, "model.mup.base_width=32");
  try {
    resolve(config, origins);
    FAIL();
  } catch (const SourceError& error) {
    EXPECT_EQ(error.problem(),
              "model.mup scales a transformer with its width: expected model.gpt2 or model.llama, "
              "got model.resnet. Leave it out.");
  }
}

TEST(MupConfigs, OptimizersAndAdaptersWithoutARuleAreRefused) {
  const std::string mup = "model.mup.base_width=2";
  for (const char* rule : {"adamw", "sgd", "lion", "muon"}) {
    EXPECT_EQ(mup_problem({mup, std::string("optimizer.") + rule + "={}"}), "no error") << rule;
  }
  EXPECT_EQ(
      mup_problem({mup, "optimizer.adafactor={}"}),
      "optimizer.adafactor does not go with model.mup: its steps follow the size of each "
      "tensor, for which there is no rule. Choose adamw, lion, sgd or muon, or leave model.mup "
      "out.");
  EXPECT_EQ(mup_problem({mup, "model.lora.rank=1"}),
            "model.mup does not go with model.lora: it has no rule for adapters, whose rank does "
            "not follow the width. Leave one of them out.");
}

}  // namespace
}  // namespace lockstep::config
