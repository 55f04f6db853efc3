#include "configs/data_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "configs/data.pb.h"
#include "configs/field.h"
#include "configs/origins.h"

namespace lockstep::config {
namespace {

void check_bpe(const BpeTokenizerConfig& bpe, const std::string& path, bool may_train,
               const Origins& origins) {
  if (bpe.vocab().empty() && bpe.merges().empty() && may_train) return;
  for (const auto& [name, value] :
       {std::pair("vocab", bpe.vocab()), std::pair("merges", bpe.merges())}) {
    if (!value.empty()) continue;
    const std::string field = join_path(path, name);
    fail(origins, field,
         fmt::format("{} is empty: expected the path of a file{}.", field,
                     may_train ? ", as vocab and merges belong together" : ""));
  }
}

/// `path` is that of `examples`: data.examples, or a source of a mixture.
template <class Examples>
void check_example_files(const Examples& examples, const std::string& path,
                         const Origins& origins) {
  const auto needs = [&](bool is_chosen, const char* field, const std::string& value,
                         const char* what) {
    if (!is_chosen || !value.empty()) return;
    const std::string at = join_path(path, field);
    fail(origins, at, fmt::format("{} is empty: expected {}.", at, what));
  };
  const char* const member = "the name of a member of each line's object";
  needs(true, "path", examples.path(), "the path of a file");
  needs(examples.has_completion(), "completion.prompt", examples.completion().prompt(), member);
  needs(examples.has_completion(), "completion.completion", examples.completion().completion(),
        member);
  needs(examples.has_chat(), "chat.messages", examples.chat().messages(), member);
  needs(examples.has_chat(), "chat.trained_role", examples.chat().trained_role(), "a role");
}

void check_mixture(const DataConfig& data, const Origins& origins) {
  const MixtureData& mixture = data.mixture();
  if (data.has_mixture() && mixture.source().empty()) {
    fail(origins, "data.mixture",
         "data.mixture has no source: expected source { text { ... } }, source { shards { ... } } "
         "or source { examples { ... } }, once or more.");
  }
  for (int i = 0; i < mixture.source_size(); ++i) {
    const MixtureSource& source = mixture.source(i);
    const std::string path = value_path("data.mixture.source", i);
    if (source.has_examples()) {
      check_example_files(source.examples(), path + ".examples", origins);
      continue;
    }
    const bool is_text = source.has_text();
    if (!(is_text ? source.text().path() : source.shards().train()).empty()) continue;
    const std::string field = path + (is_text ? ".text.path" : ".shards.train");
    fail(origins, field, fmt::format("{} is empty: expected the path of a file.", field));
  }
  if (mixture.has_bpe()) check_bpe(mixture.bpe(), "data.mixture.bpe", true, origins);
  if (mixture.has_hugging_face() && mixture.hugging_face().file().empty()) {
    fail(origins, "data.mixture.hugging_face.file",
         "data.mixture.hugging_face.file is empty: expected the path of a file.");
  }
}

/// Fine-tuning takes the tokenizer of the weights: none is trained on examples.
void check_examples(const DataConfig& data, const Origins& origins) {
  if (!data.has_examples()) return;
  check_example_files(data.examples(), "data.examples", origins);
  const auto needs_file = [&](bool is_chosen, const char* field, const std::string& value) {
    if (!is_chosen || !value.empty()) return;
    const std::string path = join_path("data.examples.tokenizer", field);
    fail(origins, path, fmt::format("{} is empty: expected the path of a file.", path));
  };
  const TokenizerConfig& tokenizer = data.examples().tokenizer();
  needs_file(tokenizer.has_hugging_face(), "hugging_face.file", tokenizer.hugging_face().file());
  needs_file(tokenizer.has_sentencepiece(), "sentencepiece.model",
             tokenizer.sentencepiece().model());
  if (tokenizer.has_bpe()) {
    check_bpe(tokenizer.bpe(), "data.examples.tokenizer.bpe", false, origins);
  }
}

/// Only the token between documents tells where one begins.
void check_attention(const DataConfig& data, const Origins& origins) {
  if (data.attention() != DataConfig::WITHIN_DOCUMENTS || has_examples(data)) return;
  const auto refuse = [&](const std::string& reason) {
    fail(origins, "data.attention",
         fmt::format("data.attention is WITHIN_DOCUMENTS, but {}: expected data.examples, or text "
                     "or shards with a tokenizer that has an end-of-text token. Choose "
                     "ACROSS_DOCUMENTS.",
                     reason));
  };
  if (data.has_random()) refuse("random tokens have no documents");
  if (data.has_table()) refuse("rows of a table have no documents");
  const char* const bytes = "no byte stands between documents";
  if (data.has_text() && data.text().tokenizer().has_byte()) refuse(bytes);
  if (data.has_mixture() && data.mixture().has_byte()) refuse(bytes);
  if (data.program().has_byte()) refuse(bytes);
  if (data.has_text() && !data.text().json_lines().separator().empty()) {
    refuse("data.text.json_lines.separator takes the place of the token between documents");
  }
}

}  // namespace

bool has_examples(const DataConfig& data) {
  return data.has_examples() ||
         std::ranges::any_of(data.mixture().source(),
                             [](const MixtureSource& source) { return source.has_examples(); });
}

void check_data(const DataConfig& data, const Origins& origins) {
  const auto check_path = [&](bool is_chosen, const std::string& field, const std::string& value) {
    if (!is_chosen || !value.empty()) return;
    fail(origins, field, fmt::format("{} is empty: expected the path of a file.", field));
  };
  check_path(data.has_text(), "data.text.path", data.text().path());
  check_path(data.has_shards(), "data.shards.train", data.shards().train());
  check_path(data.has_table(), "data.table.path", data.table().path());
  check_path(data.program().has_hugging_face(), "data.program.hugging_face.file",
             data.program().hugging_face().file());
  if (data.has_program() && data.program().command().empty()) {
    fail(origins, "data.program.command",
         "data.program.command is empty: expected the command that starts the program.");
  }
  if (data.program().has_bpe()) {
    check_bpe(data.program().bpe(), "data.program.bpe", false, origins);
  }
  check_path(data.text().tokenizer().has_hugging_face(), "data.text.tokenizer.hugging_face.file",
             data.text().tokenizer().hugging_face().file());
  check_path(data.shards().has_hugging_face(), "data.shards.hugging_face.file",
             data.shards().hugging_face().file());
  check_mixture(data, origins);
  if (data.text().tokenizer().has_bpe()) {
    check_bpe(data.text().tokenizer().bpe(), "data.text.tokenizer.bpe", true, origins);
  }
  if (data.shards().has_bpe()) check_bpe(data.shards().bpe(), "data.shards.bpe", false, origins);
  check_examples(data, origins);
  check_attention(data, origins);
}

}  // namespace lockstep::config
