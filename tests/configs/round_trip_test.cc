#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "configs/annotated_text.h"
#include "configs/load.h"
#include "configs/options.pb.h"
#include "configs/run.pb.h"
#include "tests/configs/examples.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;

int64_t from_to(int64_t low, int64_t high) { return *rc::gen::inRange<int64_t>(low, high + 1); }
bool coin() { return *rc::gen::arbitrary<bool>(); }
/// A number of any magnitude with a full-length fraction, so that every digit must survive.
double positive() {
  return std::ldexp(static_cast<double>(from_to(1, int64_t{1} << 52)),
                    -static_cast<int>(from_to(53, 90)));
}

Gpt2Config random_gpt2() {
  Gpt2Config gpt2;
  gpt2.set_context_length(from_to(1, 4096));
  gpt2.set_layers(from_to(1, 100));
  gpt2.set_heads(from_to(1, 64));
  gpt2.set_width(gpt2.heads() * from_to(1, 256));
  if (coin()) gpt2.set_vocab_size(from_to(256, 100000));
  if (coin()) gpt2.set_dropout(positive());
  if (coin()) gpt2.set_layer_norm_epsilon(positive());
  return gpt2;
}

LlamaConfig random_llama() {
  LlamaConfig llama;
  llama.set_context_length(from_to(1, 4096));
  llama.set_layers(from_to(1, 100));
  const int64_t kv_heads = from_to(1, 8);
  llama.set_heads(kv_heads * from_to(1, 8));
  llama.set_width(llama.heads() * 2 * from_to(1, 128));
  if (coin()) llama.set_kv_heads(kv_heads);
  if (coin()) llama.set_hidden_width(from_to(1, 100000));
  if (coin()) llama.set_rope_theta(1 + 1e6 * positive());
  if (coin()) llama.set_rms_norm_epsilon(positive());
  if (coin()) llama.set_tie_embeddings(coin());
  RopeScaling& scaling = *llama.mutable_rope_scaling();
  if (coin()) {
    scaling.mutable_linear()->set_factor(1 + positive());
  } else if (coin()) {
    scaling.mutable_llama3()->set_low_freq_factor(1 + positive());
  } else if (coin()) {
    scaling.mutable_yarn()->set_factor(1 + positive());
    scaling.mutable_yarn()->set_original_context_length(from_to(1, 4096));
  }
  return llama;
}

ResnetConfig random_resnet() {
  ResnetConfig resnet;
  if (coin()) resnet.set_channels(from_to(1, 64));
  resnet.set_height(from_to(1, 512));
  resnet.set_width(from_to(1, 512));
  resnet.set_classes(from_to(2, 1000));
  if (coin()) resnet.set_base_width(from_to(1, 256));
  const int64_t stages = from_to(0, 8);
  for (int64_t i = 0; i < stages; ++i) resnet.add_blocks(from_to(1, 1000));
  if (coin()) resnet.set_stem(ResnetConfig::IMAGENET);
  return resnet;
}

MlpConfig random_mlp() {
  MlpConfig mlp;
  mlp.set_inputs(from_to(1, 100000));
  mlp.set_classes(from_to(2, 1000));
  const int64_t layers = from_to(0, 5);
  for (int64_t i = 0; i < layers; ++i) mlp.add_hidden_widths(from_to(1, 1048576));
  if (coin()) mlp.set_activation(MlpConfig::GELU);
  return mlp;
}

OptimizerConfig random_optimizer() {
  OptimizerConfig optimizer;
  if (coin()) optimizer.set_learning_rate(positive());
  if (coin()) optimizer.set_weight_decay(positive());
  if (coin()) optimizer.set_clip_grad_norm(positive());
  if (coin()) {
    if (coin()) optimizer.mutable_sgd()->set_momentum(positive());
    if (coin()) optimizer.mutable_sgd()->set_nesterov(coin());
  } else if (coin()) {
    optimizer.mutable_adamw()->set_beta2(positive());
    if (coin()) optimizer.mutable_adamw()->set_epsilon(positive());
  }
  return optimizer;
}

TrainConfig random_train() {
  TrainConfig train;
  const int64_t leaves = int64_t{1} << from_to(0, 5);
  const int64_t micro = from_to(1, 32);
  train.set_steps(from_to(1, 1000000));
  train.set_batch_size(micro * leaves * from_to(1, 8));
  if (coin()) {
    train.set_micro_batch_size(micro);
    train.set_leaves(leaves);
  }
  if (coin()) train.set_time_limit_seconds(positive());
  if (coin()) train.set_eval_every(from_to(0, 1000));
  return train;
}

/// A config that resolve accepts, with random fields left at their defaults.
RunConfig random_config() {
  RunConfig config;
  if (coin()) config.set_seed(*rc::gen::arbitrary<uint64_t>());
  if (coin()) config.set_threads(static_cast<int32_t>(from_to(0, 64)));
  const bool is_language_model = coin();
  if (is_language_model) {
    if (coin()) {
      *config.mutable_model()->mutable_gpt2() = random_gpt2();
    } else {
      *config.mutable_model()->mutable_llama() = random_llama();
    }
  } else if (coin()) {
    *config.mutable_model()->mutable_resnet() = random_resnet();
  } else {
    *config.mutable_model()->mutable_mlp() = random_mlp();
  }
  if (coin() && !is_language_model) {
    config.mutable_data()->mutable_table()->set_path("p" + *rc::gen::arbitrary<std::string>());
    if (coin()) config.mutable_data()->mutable_table()->set_scale(positive());
  } else if (coin() && is_language_model) {
    // Any bytes but an empty path: quotes, newlines and bytes outside ASCII must survive.
    config.mutable_data()->mutable_text()->set_path("p" + *rc::gen::arbitrary<std::string>());
  } else {
    config.mutable_data()->mutable_random();
  }
  if (coin()) *config.mutable_optimizer() = random_optimizer();
  if (coin()) config.mutable_schedule()->set_kind(ScheduleConfig::CONSTANT);
  if (coin()) config.mutable_schedule()->set_warmup_steps(from_to(0, 1000));
  *config.mutable_train() = random_train();
  return config;
}

bool same(const RunConfig& a, const RunConfig& b) {
  return pb::util::MessageDifferencer::Equals(a, b);
}

/// Whether a list is empty by default: an empty list does not show whether resolve has set it.
bool may_be_empty(const pb::FieldDescriptor& field) {
  return field.is_repeated() && field.options().GetExtension(default_value) == "[]";
}

/// Adds the paths of unset scalars in messages that are set.
void unset_scalars(const pb::Message& message, std::vector<std::string>& found) {
  const pb::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.field(i);
    const bool is_set = field.is_repeated()
                            ? message.GetReflection()->FieldSize(message, &field) > 0
                            : message.GetReflection()->HasField(message, &field);
    if (field.message_type() == nullptr) {
      if (!is_set && !may_be_empty(field)) found.push_back(field.full_name());
    } else if (field.is_repeated()) {
      continue;  // random_config lists no messages
    } else if (is_set) {
      unset_scalars(message.GetReflection()->GetMessage(message, &field), found);
    } else if (field.real_containing_oneof() == nullptr) {
      found.push_back(field.full_name());
    }
  }
}

RC_GTEST_PROP(RoundTrip, ResolvedTextReadsBackAsTheSameConfig, ()) {
  RunConfig config = random_config();
  Origins origins;
  resolve(config, origins);
  RC_ASSERT(same(load_text(to_text(config), "other_name.txtpb"), config));
}

RC_GTEST_PROP(RoundTrip, ResolvingTwiceChangesNothing, ()) {
  RunConfig once = random_config();
  Origins origins;
  resolve(once, origins);
  RunConfig twice = once;
  resolve(twice, origins);
  RC_ASSERT(same(once, twice));
}

RC_GTEST_PROP(RoundTrip, ResolvingSetsEveryScalarOfEveryChosenMessage, ()) {
  RunConfig config = random_config();
  Origins origins;
  resolve(config, origins);
  std::vector<std::string> unset;
  unset_scalars(config, unset);
  RC_ASSERT(unset == std::vector<std::string>());
}

/// A list in one of the ways users may write it: one value, or several with or without brackets.
std::string list_text(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return values.empty() || coin() ? "[" + text + "]" : text;
}

RC_GTEST_PROP(RoundTrip, ListsHoldWhatFilesAndOverridesSayInTheirOrder, ()) {
  const auto some_values = [] {
    return *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(1, 1048577));
  };
  RunConfig config;
  Origins origins;
  merge_text(config, origins, kSmallestClassifier, "a");
  merge_text(config, origins, "model { mlp { inputs: 1 classes: 2 } }", "b");
  std::vector<int64_t> wanted = {128};
  const int64_t changes = from_to(1, 5);
  for (int64_t i = 0; i < changes; ++i) {
    const std::vector<int64_t> values = some_values();
    const bool appends = coin();
    if (!appends && coin()) {
      std::string pieces;
      for (const int64_t value : values) pieces += " hidden_widths: " + std::to_string(value);
      if (values.empty()) pieces = " hidden_widths: []";
      merge_text(config, origins, "model { mlp {" + pieces + " } }", "c");
    } else {
      const char* sign = appends ? "+=" : "=";
      set_value(config, origins, "model.mlp.hidden_widths" + (sign + list_text(values)));
    }
    if (!appends) wanted.clear();
    wanted.insert(wanted.end(), values.begin(), values.end());
  }
  resolve(config, origins);
  const auto held = [](const RunConfig& of) {
    const auto& list = of.model().mlp().hidden_widths();
    return std::vector<int64_t>(list.begin(), list.end());
  };
  RC_ASSERT(held(config) == wanted);
  RC_ASSERT(same(load_text(to_text(config), "other_name.txtpb"), config));
  RC_ASSERT(same(load_text(annotated_text(config, origins)), config));
}

RC_GTEST_PROP(RoundTrip, AnyTextGivesAConfigOrAConfigError, ()) {
  // Random words of the schema get further into the loader than random bytes.
  const std::vector<std::string> words = {
      "model", "gpt2", "train", "steps",  "data",      "random", "path",
      "{",     "}",    ":",     "1",      "-",         "'a'",    "nan",
      "#",     "\n",   "<",     "[",      "]",         "1e400",  "F32",
      ",",     "seed", "\"",    "kernel", "precision", "mlp",    "hidden_widths"};
  std::string text = coin() ? kSmallest : "";
  for (const std::string& word :
       *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(words))) {
    text += word + " ";
  }
  try {
    load_text(text);
  } catch (const ConfigError& e) {
    RC_ASSERT(std::string(e.what()).starts_with("config.txtpb"));
  }
}

TEST(RoundTrip, TextStartsWithTheNamesOfItsSchema) {
  EXPECT_TRUE(to_text(load_text(kSmallest))
                  .starts_with("# proto-file: configs/run.proto\n"
                               "# proto-message: lockstep.config.RunConfig\n\n"));
}

TEST(Examples, EveryExampleRunLoads) {
  const auto folder = std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "configs/examples";
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".txtpb") continue;
    ++examples;
    const RunConfig config = load(std::vector<std::string>{entry.path()});
    EXPECT_EQ(config.name(), entry.path().stem());
    EXPECT_TRUE(same(load_text(to_text(config)), config)) << entry.path();
  }
  EXPECT_GE(examples, 9);
}

}  // namespace
}  // namespace lockstep::config
