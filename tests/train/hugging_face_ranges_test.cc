// A model that a config.json describes is one that could be configured: nn knows nothing of
// configs, so this compares its ranges with those of configs/model.proto.

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/model.pb.h"
#include "configs/options.pb.h"
#include "core/base/error.h"
#include "nn/models/hugging_face_config.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

namespace pb = google::protobuf;

struct Counterpart {
  const pb::Descriptor* message;
  const char* field;
  const char* key;
};

std::vector<Counterpart> counterparts() {
  const pb::Descriptor* gpt2 = config::Gpt2Config::descriptor();
  const pb::Descriptor* llama = config::LlamaConfig::descriptor();
  const pb::Descriptor* linear = config::LinearRopeScaling::descriptor();
  const pb::Descriptor* llama3 = config::Llama3RopeScaling::descriptor();
  const pb::Descriptor* yarn = config::YarnRopeScaling::descriptor();
  return {{gpt2, "vocab_size", "vocab_size"},
          {gpt2, "context_length", "n_positions"},
          {gpt2, "layers", "n_layer"},
          {gpt2, "heads", "n_head"},
          {gpt2, "width", "n_embd"},
          {gpt2, "dropout", "resid_pdrop"},
          {gpt2, "layer_norm_epsilon", "layer_norm_epsilon"},
          {llama, "vocab_size", "vocab_size"},
          {llama, "context_length", "max_position_embeddings"},
          {llama, "layers", "num_hidden_layers"},
          {llama, "heads", "num_attention_heads"},
          {llama, "kv_heads", "num_key_value_heads"},
          {llama, "width", "hidden_size"},
          {llama, "hidden_width", "intermediate_size"},
          {llama, "rope_theta", "rope_theta"},
          {llama, "rms_norm_epsilon", "rms_norm_eps"},
          {linear, "factor", "factor"},
          {llama3, "factor", "factor"},
          {llama3, "low_freq_factor", "low_freq_factor"},
          {llama3, "high_freq_factor", "high_freq_factor"},
          {llama3, "original_context_length", "original_max_position_embeddings"},
          {yarn, "factor", "factor"},
          {yarn, "original_context_length", "original_max_position_embeddings"},
          {yarn, "beta_fast", "beta_fast"},
          {yarn, "beta_slow", "beta_slow"},
          {yarn, "attention_factor", "attention_factor"}};
}

/// A config.json of one size everywhere, with `member` in the object where its key belongs. Later
/// members replace earlier ones.
std::string config_with(const pb::Descriptor* message, const std::string& member) {
  const std::string name = message->name();
  if (name == "Gpt2Config") {
    return R"({"model_type": "gpt2", "vocab_size": 1, "n_positions": 1, "n_layer": 1, "n_head": 1,
               "n_embd": 1, )" +
           member + "}";
  }
  const std::string llama = R"({"model_type": "llama", "vocab_size": 1, "hidden_size": 1,
      "max_position_embeddings": 1, "num_hidden_layers": 1, "num_attention_heads": 1,
      "num_key_value_heads": 1, "intermediate_size": 1, )";
  if (name == "LlamaConfig") return llama + member + "}";
  const char* kind = name == "LinearRopeScaling"   ? "linear"
                     : name == "Llama3RopeScaling" ? "llama3"
                                                   : "yarn";
  return fmt::format(R"({}"rope_scaling": {{"rope_type": "{}", "factor": 1, "low_freq_factor": 1,
                         "high_freq_factor": 4, {}}}}})",
                     llama, kind, member);
}

std::string refusal(const Counterpart& counterpart, double value) {
  const std::string member = fmt::format("\"{}\": {}", counterpart.key, value);
  return message_of<ConfigError>(
      [&] { (void)nn::parse_hugging_face_config(config_with(counterpart.message, member)); });
}

TEST(HuggingFaceRanges, AreThoseOfTheConfig) {
  for (const Counterpart& counterpart : counterparts()) {
    const std::string place = fmt::format("{}.{}", counterpart.message->name(), counterpart.field);
    const pb::FieldDescriptor* field = counterpart.message->FindFieldByName(counterpart.field);
    ASSERT_NE(field, nullptr) << place;
    const config::Range& range = field->options().GetExtension(config::range);
    ASSERT_TRUE(range.has_min() && range.has_max()) << place;
    const bool whole = field->type() == pb::FieldDescriptor::TYPE_INT64;
    const double step = whole ? 1 : 1e-3;
    const std::string out_of_range = fmt::format("\"{}\" is ", counterpart.key);
    const auto refused = [&](double value) {
      return refusal(counterpart, value).find(out_of_range) != std::string::npos;
    };
    EXPECT_EQ(refused(range.min()), range.exclusive_min()) << place;
    EXPECT_TRUE(refused(range.min() - step)) << place;
    EXPECT_FALSE(refused(range.min() + step)) << place;
    EXPECT_EQ(refused(range.max()), range.exclusive_max()) << place;
    EXPECT_TRUE(refused(range.max() + step)) << place;
  }
}

}  // namespace
}  // namespace lockstep::train
