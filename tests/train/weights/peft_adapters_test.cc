#include "train/weights/peft_adapters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "nn/adapters/lora.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/train/tiny_models.h"
#include "train/weights/adapter_files.h"
#include "train/weights/tensor_file.h"

namespace lockstep::train {
namespace {

constexpr auto kIsProjection = [](std::string_view path) { return path.ends_with("_proj"); };

/// A model with random adapters in its projections.
template <class Model, class Options>
std::unique_ptr<Model> adapted_model(const Options& options, int64_t rank = 2) {
  auto model = std::make_unique<Model>(options);
  nn::add_lora(*model, kIsProjection, {.rank = rank, .alpha = 6});
  const NoGradGuard no_grad;
  for (const nn::Linear* each : nn::adapted_layers(*model)) each->lora()->b.weight.normal_();
  return model;
}

std::string json_of(const std::string& more) {
  return R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6, "target_modules": ["c_proj"], "bias": "none")" +
         more + "}";
}

class PeftAdaptersTest : public testing::Test {
 protected:
  void SetUp() override { save_adapters(*gpt2_, folder_.path()); }
  void describe(const std::string& more) {
    put_file(folder_ / "adapter_config.json", json_of(more));
  }
  std::string refusal() {
    return message_of<CheckpointError>([&] { PeftAdapters adapters(folder_.path()); });
  }
  std::string refusal_by(nn::Module& model) {
    return message_of<CheckpointError>([&] { PeftAdapters(folder_.path()).load_into(model); });
  }

  TemporaryDirectory folder_;
  const std::unique_ptr<nn::Gpt2> gpt2_ = adapted_model<nn::Gpt2>(tiny_gpt2());
};

template <class Model, class Options>
void expect_read_as_written(const Options& options) {
  const TemporaryDirectory folder;
  const auto written = adapted_model<Model>(options);
  save_adapters(*written, folder.path());
  const PeftAdapters adapters(folder.path());
  EXPECT_EQ(adapters.rank(), 2);
  EXPECT_EQ(adapters.alpha(), 6);
  Model read(options);
  nn::add_lora(read, [&](std::string_view path) { return adapters.contains(read, path); },
               {.rank = 2, .alpha = 6});
  adapters.load_into(read);
  ASSERT_EQ(nn::adapted_layers(read).size(), nn::adapted_layers(*written).size());
  for (size_t i = 0; i < nn::adapted_layers(read).size(); ++i) {
    const nn::LoraAdapter& a = *nn::adapted_layers(read)[i]->lora();
    const nn::LoraAdapter& b = *nn::adapted_layers(*written)[i]->lora();
    EXPECT_TRUE(same_parameters(a.a, b.a) && same_parameters(a.b, b.b));
  }
}

TEST_F(PeftAdaptersTest, AreReadAsTheyAreWritten) {
  expect_read_as_written<nn::Gpt2>(tiny_gpt2());
  expect_read_as_written<nn::Llama>(tiny_llama());
}

TEST_F(PeftAdaptersTest, DeferredAdaptersAreFilledLater) {
  const nn::DeferValuesGuard later;
  nn::Gpt2 model(tiny_gpt2());
  nn::add_lora(model, kIsProjection, {.rank = 2, .alpha = 6});
  PeftAdapters(folder_.path()).load_into(model);
  const std::vector<nn::NamedParameter> written = gpt2_->named_parameters();
  for (const nn::NamedParameter& each : model.named_parameters()) {
    if (!nn::is_lora_parameter(each.name)) continue;
    const Tensor values = empty(each.tensor.sizes());
    model.fill_parameter(each.tensor, values);
    const auto same = std::ranges::find(written, each.name, &nn::NamedParameter::name);
    ASSERT_NE(same, written.end());
    EXPECT_TRUE(equal(values, same->tensor)) << each.name;
  }
}

TEST_F(PeftAdaptersTest, SettingsThatChangeNothingAreAccepted) {
  describe(
      R"(, "use_dora": false, "rank_pattern": {}, "modules_to_save": null, "init_lora_weights": "gaussian",
         "target_modules": "all-linear", "lora_dropout": 0.1, "layers_to_transform": null)");
  EXPECT_EQ(PeftAdapters(folder_.path()).rank(), 2);
}

TEST_F(PeftAdaptersTest, ScalesStabilisedByRankBecomeAnAlpha) {
  describe(R"(, "use_rslora": true)");
  EXPECT_DOUBLE_EQ(PeftAdapters(folder_.path()).alpha() / 2, 6 / std::sqrt(2.0));
}

TEST_F(PeftAdaptersTest, OtherKindsAreRefusedByTheirSetting) {
  for (const auto& [more, part] : std::vector<std::pair<std::string, std::string>>{
           {R"(, "use_dora": true)", R"("use_dora" is true, which is not supported)"},
           {R"(, "modules_to_save": ["lm_head"])", R"("modules_to_save" is ["lm_head"])"},
           {R"(, "rank_pattern": {"q_proj": 4})", R"("rank_pattern" is {"q_proj":4})"},
           {R"(, "init_lora_weights": "pissa")", R"("init_lora_weights" is "pissa")"},
           {R"(, "bias": "all")", R"("bias" is "all")"},
           {R"(, "peft_type": "IA3")", R"("peft_type" is "IA3")"}}) {
    describe(more);
    const std::string message = refusal();
    EXPECT_TRUE(says(message, "[adapter] " + (folder_ / "adapter_config.json").string()));
    EXPECT_TRUE(says(message, part));
  }
}

TEST_F(PeftAdaptersTest, DamagedDescriptionsAreRefused) {
  for (const char* json : {"", "[]", "{", R"({"r": "2", "lora_alpha": 4})", R"({"r": 2})",
                           R"({"r": 0, "lora_alpha": 4})", R"({"r": 2, "lora_alpha": -1})"}) {
    put_file(folder_ / "adapter_config.json", json);
    EXPECT_TRUE(says(refusal(), "adapter_config.json")) << json;
  }
}

TEST_F(PeftAdaptersTest, FilesMustBeThereAndHoldAdaptersAlone) {
  const std::filesystem::path tensors = folder_ / "adapter_model.safetensors";
  std::filesystem::rename(tensors, folder_ / "kept");
  EXPECT_TRUE(says(refusal(), "adapter_model.safetensors"));
  const Tensor one = gpt2_->parameters().front().detach();
  const auto written = [&](const std::string& name) {
    save_tensors(tensors, std::vector<nn::StoredParameter>{{name, one}});
    return refusal();
  };
  EXPECT_TRUE(
      says(written("base_model.model.wte.weight"),
           "holds \"base_model.model.wte.weight\": expected base_model.model.LAYER.lora_A"));
  EXPECT_TRUE(says(written("h.0.lora_A.weight"), "holds \"h.0.lora_A.weight\""));
  EXPECT_TRUE(says(written("base_model.model.x.lora_B.weight"),
                   "of x only lora_B is there: expected lora_A and lora_B."));
}

TEST_F(PeftAdaptersTest, AdaptersOfAnotherModelLeaveThisOneUnchanged) {
  const auto fewer = adapted_model<nn::Gpt2>(tiny_gpt2(/*layers=*/1));
  const auto other_rank = adapted_model<nn::Gpt2>(tiny_gpt2(), /*rank=*/3);
  nn::Gpt2 everywhere(tiny_gpt2());
  nn::add_lora(everywhere, [](std::string_view) { return true; }, {.rank = 2});
  const auto same = adapted_model<nn::Gpt2>(tiny_gpt2(), /*rank=*/3);
  same->load_state_dict(other_rank->state_dict());
  EXPECT_TRUE(says(refusal_by(*fewer),
                   "the model has 2 of the 4 layers with an adapter, such as "
                   "transformer.h.0.attn.c_proj."));
  EXPECT_TRUE(says(refusal_by(*other_rank), "has the shape [2, 6]: expected [3, 6]."));
  EXPECT_TRUE(same_parameters(*same, *other_rank));
  EXPECT_TRUE(says(refusal_by(everywhere), "has no adapter of h.0.attn.c_attn."));
}

}  // namespace
}  // namespace lockstep::train
