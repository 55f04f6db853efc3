#include "configs/model_checks.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <string>

#include "configs/architectures.h"
#include "configs/field.h"
#include "configs/origins.h"
#include "configs/run.pb.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;

/// What can be known of a tokenizer's vocabulary before its files are read.
void check_vocabulary(const DataConfig& data, const std::string& model, int64_t vocab_size,
                      const Origins& origins) {
  if (!data.has_text() && !data.has_examples()) return;
  const TokenizerConfig& tokenizer =
      data.has_text() ? data.text().tokenizer() : data.examples().tokenizer();
  if (tokenizer.has_byte() && vocab_size < 256) {
    fail(origins, model + ".vocab_size",
         fmt::format("{}.vocab_size is {}: text is read as bytes, so expected at least 256.", model,
                     vocab_size));
  }
  const SentencePieceConfig& pieces = tokenizer.sentencepiece();
  if (data.has_text() && tokenizer.has_sentencepiece() && pieces.model().empty() &&
      vocab_size < pieces.vocab_size()) {
    fail(origins, model + ".vocab_size",
         fmt::format("{}.vocab_size is {}: expected at least data.text.tokenizer.sentencepiece."
                     "vocab_size, which is {}.",
                     model, vocab_size, pieces.vocab_size()));
  }
}

/// The chosen member of a oneof: "gpt2".
std::string choice(const pb::Message& message, const char* oneof) {
  const pb::OneofDescriptor* members = message.GetDescriptor()->FindOneofByName(oneof);
  return message.GetReflection()->GetOneofFieldDescriptor(message, members)->name();
}

/// Language models take tokens, the others rows of features; random data is either.
void check_source(const DataConfig& data, const Architecture& model, const Origins& origins) {
  if (data.has_random() || data.has_table() != model.is_language_model()) return;
  const std::string source = choice(data, "source");
  fail(origins, "data." + source,
       model.is_language_model()
           ? fmt::format(
                 "data.{} gives rows of features, but {} is a language model: "
                 "expected data.text, data.shards, data.mixture, data.examples, data.program or "
                 "data.random.",
                 source, model.path())
           : fmt::format("data.{} gives tokens, but {} classifies rows of features: "
                         "expected data.table or data.random.",
                         source, model.path()));
}

/// checkpoint_every is about the blocks of BLOCK.
void check_recompute(const ModelConfig& model, const Origins& origins) {
  if (model.recompute() == ModelConfig::BLOCK || model.checkpoint_every() == 0) return;
  fail(origins, "model.checkpoint_every",
       fmt::format("model.checkpoint_every is {}, which goes with model.recompute: BLOCK only: got "
                   "{}. Set it to 0, or recompute to BLOCK.",
                   model.checkpoint_every(), ModelConfig::Recompute_Name(model.recompute())));
}

/// Patterns of names must not be empty; whether they fit, the model knows.
void check_patterns(const google::protobuf::RepeatedPtrField<std::string>& patterns,
                    const std::string& path, const Origins& origins) {
  for (int i = 0; i < patterns.size(); ++i) {
    if (!patterns[i].empty()) continue;
    fail(origins, path,
         fmt::format("{} is empty: expected a pattern of names, such as \"*.bias\".",
                     value_path(path, i)));
  }
}

/// Classifiers train on plain cross-entropy.
void check_no_loss_options(const LossConfig& loss, const Origins& origins) {
  const auto refuse = [&](double value, const char* path) {
    if (value == 0) return;
    fail(origins, path,
         fmt::format("{} is {}: expected 0 for a model that is a classifier. Leave it out.", path,
                     value));
  };
  refuse(loss.label_smoothing(), "train.loss.label_smoothing");
  refuse(loss.z_loss(), "train.loss.z_loss");
}

void check_trained(const ModelConfig& model, const Origins& origins) {
  check_patterns(model.freeze(), "model.freeze", origins);
  if (!model.has_lora()) return;
  check_patterns(model.lora().targets(), "model.lora.targets", origins);
  if (model.lora().targets().empty()) {
    fail(origins, "model.lora.targets",
         "model.lora.targets is []: expected a pattern of the names of linear layers, such as "
         "\"*\".");
  }
  if (!model.lora().weights().empty() && model.weights().empty()) {
    fail(origins, "model.lora.weights",
         "model.lora.weights needs model.weights: expected the folder of the model that the "
         "adapters were trained on.");
  }
}

/// muP has rules for the widths of transformers, and for some optimizers.
void check_mup(const RunConfig& config, const Architecture& model, const Origins& origins) {
  if (!config.model().has_mup()) return;
  const MupConfig& mup = config.model().mup();
  if (model.width == nullptr) {
    fail(origins, "model.mup",
         fmt::format("model.mup scales a transformer with its width: expected model.gpt2 or "
                     "model.llama, got {}. Leave it out.",
                     model.path()));
  }
  if (mup.base_width() % mup.base_heads() != 0) {
    fail(origins, "model.mup.base_width",
         fmt::format("model.mup.base_width is {}, which the base model's heads do not divide: "
                     "expected a multiple of model.mup.base_heads, which is {}. Set base_heads to "
                     "the heads of the base model.",
                     mup.base_width(), mup.base_heads()));
  }
  if (config.model().has_lora()) {
    fail(origins, "model.mup",
         "model.mup does not go with model.lora: it has no rule for adapters, whose rank does not "
         "follow the width. Leave one of them out.");
  }
  if (config.optimizer().has_adafactor()) {
    fail(
        origins, "optimizer.adafactor",
        "optimizer.adafactor does not go with model.mup: its steps follow the size of each tensor, "
        "for which there is no rule. Choose adamw, lion, sgd or muon, or leave model.mup out.");
  }
}

}  // namespace

void check_model(const RunConfig& config, const Origins& origins) {
  const Architecture& architecture = architecture_of(config.model());
  if (architecture.check != nullptr) architecture.check(config.model(), origins);
  check_recompute(config.model(), origins);
  check_trained(config.model(), origins);
  check_mup(config, architecture, origins);
  check_source(config.data(), architecture, origins);
  if (!architecture.is_language_model()) {
    check_no_loss_options(config.train().loss(), origins);
    return;
  }
  check_vocabulary(config.data(), architecture.path(), architecture.vocabulary(config.model()),
                   origins);
}

}  // namespace lockstep::config
