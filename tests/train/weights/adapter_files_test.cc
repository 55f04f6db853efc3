#include "train/weights/adapter_files.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"
#include "nn/adapters/lora.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/train/tiny_models.h"

namespace lockstep::train {
namespace {

class AdapterConfigTest : public testing::Test {
 protected:
  void describe(const std::string& json) { put_file(folder_ / "adapter_config.json", json); }
  std::string refusal(const std::string& json) {
    describe(json);
    nn::Gpt2 model(tiny_gpt2());
    const std::string message =
        message_of<CheckpointError>([&] { add_described_adapters(model, folder_.path()); });
    EXPECT_TRUE(says(message, "[weights] " + (folder_ / "adapter_config.json").string()));
    return message;
  }

  TemporaryDirectory folder_;
};

TEST_F(AdapterConfigTest, GivesTheNamedLayersAdapters) {
  nn::Gpt2 model(tiny_gpt2());
  add_described_adapters(model, folder_.path());
  EXPECT_TRUE(nn::adapted_layers(model).empty()) << "nothing is described";
  describe(R"({"r": 3, "lora_alpha": 6, "target_modules": ["h.0.mlp.c_fc", "h.1.mlp.c_fc"]})");
  add_described_adapters(model, folder_.path());
  const auto layers = nn::adapted_layers(model);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[1]->lora()->scale, 2);
}

TEST_F(AdapterConfigTest, WhatDescribesNoAdaptersIsRefused) {
  for (const char* json :
       {"{}", "[]", R"({"r": 2, "lora_alpha": 4})", R"({"r": 2, "target_modules": []})",
        R"({"r": "2", "lora_alpha": 4, "target_modules": []})",
        R"({"r": 2, "lora_alpha": 4, "target_modules": [1]})"}) {
    EXPECT_TRUE(says(refusal(json),
                     " describes no adapters as Lockstep writes them: expected r, lora_alpha and a "
                     "list target_modules of layers ("));
  }
  EXPECT_FALSE(refusal("{").empty());
}

TEST_F(AdapterConfigTest, ARankOutOfItsRangeIsRefused) {
  for (const std::string rank : {"0", "-1", "65537"}) {
    EXPECT_TRUE(says(refusal("{\"r\": " + rank + R"(, "lora_alpha": 4, "target_modules": []})"),
                     ": expected r from 1 to 65536, got " + rank + "."));
  }
}

TEST_F(AdapterConfigTest, LayersThatTheModelLacksAreCounted) {
  EXPECT_TRUE(says(
      refusal(R"({"r": 2, "lora_alpha": 4, "target_modules": ["h.0.mlp.c_fc", "h.9.mlp.c_fc"]})"),
      ": the model has 1 of the 2 layers in target_modules. The file belongs to another model."));
}

}  // namespace
}  // namespace lockstep::train
