#include "configs/model_checks.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <string>

#include "configs/origins.h"
#include "configs/run.pb.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;

constexpr int64_t kMostChannels = 65536;

void check_heads(const std::string& path, int64_t width, int64_t heads, const Origins& origins) {
  if (width % heads == 0) return;
  fail(origins, path + ".heads",
       fmt::format("{}.heads does not divide the width: expected a divisor of {}, got {}.", path,
                   width, heads));
}

void check_above(const std::string& path, const char* high_name, double high, const char* low_name,
                 double low, const Origins& origins) {
  if (high > low) return;
  fail(origins, path + "." + high_name,
       fmt::format("{}.{} is {}: expected more than {}, which is {}.", path, high_name, high,
                   low_name, low));
}

void check_rope_scaling(const RopeScaling& scaling, const Origins& origins) {
  const std::string path = "model.llama.rope_scaling";
  if (scaling.has_llama3()) {
    check_above(path + ".llama3", "high_freq_factor", scaling.llama3().high_freq_factor(),
                "low_freq_factor", scaling.llama3().low_freq_factor(), origins);
  }
  if (scaling.has_yarn()) {
    check_above(path + ".yarn", "beta_fast", scaling.yarn().beta_fast(), "beta_slow",
                scaling.yarn().beta_slow(), origins);
  }
}

/// Checks vocab_size as far as the tokenizer's vocabulary is known before its files are read.
void check_vocabulary(const DataConfig& data, const std::string& model, int64_t vocab_size,
                      const Origins& origins) {
  if (!data.has_text()) return;
  const TokenizerConfig& tokenizer = data.text().tokenizer();
  if (tokenizer.has_byte() && vocab_size < 256) {
    fail(origins, model + ".vocab_size",
         fmt::format("{}.vocab_size is {}: text is read as bytes, so expected at least 256.", model,
                     vocab_size));
  }
  const SentencePieceConfig& pieces = tokenizer.sentencepiece();
  if (tokenizer.has_sentencepiece() && pieces.model().empty() && vocab_size < pieces.vocab_size()) {
    fail(origins, model + ".vocab_size",
         fmt::format("{}.vocab_size is {}: expected at least data.text.tokenizer.sentencepiece."
                     "vocab_size, which is {}.",
                     model, vocab_size, pieces.vocab_size()));
  }
}

void check(const Gpt2Config& gpt2, const Origins& origins) {
  check_heads("model.gpt2", gpt2.width(), gpt2.heads(), origins);
}

void check(const LlamaConfig& llama, const Origins& origins) {
  const std::string path = "model.llama";
  check_heads(path, llama.width(), llama.heads(), origins);
  if (llama.heads() % llama.kv_heads() != 0) {
    fail(origins, path + ".kv_heads",
         fmt::format("{}.kv_heads does not divide the heads: expected a divisor of {}, got {}.",
                     path, llama.heads(), llama.kv_heads()));
  }
  if (llama.width() / llama.heads() % 2 != 0) {
    fail(origins, path + ".heads",
         fmt::format("{}: rotary positions turn pairs, so width / heads must be even: got {} / {} "
                     "= {}.",
                     path, llama.width(), llama.heads(), llama.width() / llama.heads()));
  }
  check_rope_scaling(llama.rope_scaling(), origins);
}

void check(const ResnetConfig& resnet, const Origins& origins) {
  if (resnet.blocks().empty()) {
    fail(origins, "model.resnet.blocks",
         "model.resnet.blocks is []: expected at least one stage, as in [2, 2].");
  }
  int64_t channels = resnet.base_width();
  for (int i = 1; i < resnet.blocks_size() && channels <= kMostChannels; ++i) channels *= 2;
  if (channels > kMostChannels) {
    fail(origins, "model.resnet.base_width",
         fmt::format("model.resnet.base_width is {} and doubles with each of {} stages: expected "
                     "at most {} channels in the last.",
                     resnet.base_width(), resnet.blocks_size(), kMostChannels));
  }
}

/// Name of the chosen member of a oneof: "gpt2".
std::string choice(const pb::Message& message, const char* oneof) {
  const pb::OneofDescriptor* members = message.GetDescriptor()->FindOneofByName(oneof);
  return message.GetReflection()->GetOneofFieldDescriptor(message, members)->name();
}

/// Checks that language models get tokens and classifiers rows of features; random data fits both.
void check_source(const RunConfig& config, bool is_language_model, const Origins& origins) {
  const DataConfig& data = config.data();
  if (data.has_random() || data.has_table() != is_language_model) return;
  const std::string model = choice(config.model(), "architecture");
  const std::string source = choice(data, "source");
  fail(origins, "data." + source,
       is_language_model
           ? fmt::format("data.{} gives rows of features, but model.{} is a language model: "
                         "expected data.text, data.shards or data.random.",
                         source, model)
           : fmt::format("data.{} gives tokens, but model.{} classifies rows of features: "
                         "expected data.table or data.random.",
                         source, model));
}

}  // namespace

void check_model(const RunConfig& config, const Origins& origins) {
  const ModelConfig& model = config.model();
  if (model.has_gpt2()) check(model.gpt2(), origins);
  if (model.has_llama()) check(model.llama(), origins);
  if (model.has_resnet()) check(model.resnet(), origins);
  const bool is_language_model = model.has_gpt2() || model.has_llama();
  check_source(config, is_language_model, origins);
  if (!is_language_model) return;
  check_vocabulary(config.data(), model.has_gpt2() ? "model.gpt2" : "model.llama",
                   model.has_gpt2() ? model.gpt2().vocab_size() : model.llama().vocab_size(),
                   origins);
}

}  // namespace lockstep::config
