#include "configs/model_checks.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <string>

#include "configs/architectures.h"
#include "configs/origins.h"
#include "configs/run.pb.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;

/// What can be known of a tokenizer's vocabulary before its files are read.
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
           ? fmt::format("data.{} gives rows of features, but {} is a language model: "
                         "expected data.text, data.shards, data.mixture or data.random.",
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

}  // namespace

void check_model(const RunConfig& config, const Origins& origins) {
  const Architecture& architecture = architecture_of(config.model());
  if (architecture.check != nullptr) architecture.check(config.model(), origins);
  check_recompute(config.model(), origins);
  check_source(config.data(), architecture, origins);
  if (!architecture.is_language_model()) return;
  check_vocabulary(config.data(), architecture.path(), architecture.vocabulary(config.model()),
                   origins);
}

}  // namespace lockstep::config
