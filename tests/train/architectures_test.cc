#include "train/architectures.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "configs/architectures.h"
#include "configs/load.h"
#include "configs/run.pb.h"

namespace lockstep::train {
namespace {

const std::map<std::string, std::string>& smallest_models() {
  static const std::map<std::string, std::string> kModels = {
      {"gpt2", "gpt2 { context_length: 8 layers: 1 heads: 2 width: 4 }"},
      {"llama", "llama { context_length: 8 layers: 1 heads: 2 width: 4 }"},
      {"resnet", "resnet { height: 8 width: 8 classes: 2 blocks: [1] base_width: 4 }"},
      {"mlp", "mlp { inputs: 4 classes: 2 hidden_widths: [3] }"}};
  return kModels;
}

TEST(ModelArchitectures, EveryArchitectureOfConfigsIsBuiltAsItsKind) {
  for (const config::Architecture& each : config::architectures()) {
    ASSERT_TRUE(smallest_models().contains(each.name)) << each.name << ": add a smallest model";
    const config::RunConfig run = config::load_text("model { " + smallest_models().at(each.name) +
                                                    " }\ndata { random {} }\n"
                                                    "train { steps: 1 batch_size: 1 }\n");
    if (each.is_language_model()) {
      const auto model = make_language_model(run.model());
      EXPECT_EQ(model->context_length(), each.context_length(run.model())) << each.name;
    } else {
      EXPECT_EQ(make_classifier(run.model())->classes(), 2) << each.name;
    }
  }
}

config::RunConfig run_of(const std::string& model) {
  return config::load_text("model { " + model +
                           " }\ndata { random {} }\ntrain { steps: 1 batch_size: 1 }\n");
}

TEST(ModelArchitectures, EveryFieldOfALanguageModelReachesIt) {
  const auto llama = nlohmann::json::parse(
      make_language_model(
          run_of("llama { vocab_size: 300 context_length: 24 layers: 3 heads: 4 kv_heads: 2 "
                 "width: 16 hidden_width: 40 rope_theta: 500 rms_norm_epsilon: 0.25 "
                 "tie_embeddings: true }")
              .model())
          ->hugging_face_config());
  EXPECT_EQ(llama["vocab_size"], 300);
  EXPECT_EQ(llama["max_position_embeddings"], 24);
  EXPECT_EQ(llama["num_hidden_layers"], 3);
  EXPECT_EQ(llama["num_attention_heads"], 4);
  EXPECT_EQ(llama["num_key_value_heads"], 2);
  EXPECT_EQ(llama["hidden_size"], 16);
  EXPECT_EQ(llama["intermediate_size"], 40);
  EXPECT_EQ(llama["rope_theta"], 500);
  EXPECT_EQ(llama["rms_norm_eps"], 0.25);
  EXPECT_EQ(llama["tie_word_embeddings"], true);
  const auto gpt2 = nlohmann::json::parse(
      make_language_model(run_of("gpt2 { vocab_size: 300 context_length: 24 layers: 3 heads: 4 "
                                 "width: 16 layer_norm_epsilon: 0.25 }")
                              .model())
          ->hugging_face_config());
  EXPECT_EQ(gpt2["vocab_size"], 300);
  EXPECT_EQ(gpt2["n_positions"], 24);
  EXPECT_EQ(gpt2["n_layer"], 3);
  EXPECT_EQ(gpt2["n_head"], 4);
  EXPECT_EQ(gpt2["n_embd"], 16);
  EXPECT_EQ(gpt2["layer_norm_epsilon"], 0.25);
}

TEST(ModelArchitectures, EveryFieldOfAClassifierChangesItsParameters) {
  const auto parameters = [](const std::string& model) {
    std::string text;
    const auto built = make_classifier(run_of(model).model());
    for (const nn::NamedParameter& each : built->named_parameters()) {
      text += each.name + each.tensor.shape() + "\n";
    }
    return text;
  };
  const std::string resnet = "resnet { height: 16 width: 16 ";
  std::set<std::string> different;
  const std::vector<std::string> resnets = {"classes: 2 blocks: [1] base_width: 4",
                                            "classes: 3 blocks: [1] base_width: 4",
                                            "classes: 2 blocks: [2] base_width: 4",
                                            "classes: 2 blocks: [1] base_width: 8",
                                            "classes: 2 blocks: [1] base_width: 4 channels: 2",
                                            "classes: 2 blocks: [1] base_width: 4 stem: IMAGENET"};
  for (const std::string& fields : resnets) different.insert(parameters(resnet + fields + " }"));
  EXPECT_EQ(different.size(), resnets.size());
  different.clear();
  const std::vector<std::string> mlps = {
      "inputs: 4 classes: 2 hidden_widths: [3]", "inputs: 5 classes: 2 hidden_widths: [3]",
      "inputs: 4 classes: 3 hidden_widths: [3]", "inputs: 4 classes: 2 hidden_widths: [3, 3]"};
  for (const std::string& fields : mlps) different.insert(parameters("mlp { " + fields + " }"));
  EXPECT_EQ(different.size(), mlps.size());
}

}  // namespace
}  // namespace lockstep::train
