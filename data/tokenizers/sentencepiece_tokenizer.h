#pragma once

#include "data/tokenizers/sentencepiece_model.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {

/// SentencePiece (Kudo, Richardson 2018) with BPE: characters are merged by the pieces' scores, a
/// space is part of the word after it, and characters without a piece become bytes. Reads the files
/// of the SentencePiece library and gives its ids, with one exception: U+2581 and bytes that are
/// not UTF-8, which the library does not round-trip, become byte tokens.
///
/// Reimplemented because Debian's build of the library exports its own copy of Protocol Buffers
/// 3.14 and so cannot share a process with the version that reads the configs.
class SentencePieceTokenizer : public Tokenizer {
 public:
  static constexpr const char* kFileName = "tokenizer.model";

  /// Reads a model file. Throws DataError naming it.
  explicit SentencePieceTokenizer(const std::filesystem::path& model);
  /// Parses the bytes of a model file, such as train_sentencepiece returns; `file` names them in
  /// error messages.
  SentencePieceTokenizer(std::string model, const std::string& file);

  std::string_view name() const override { return "sentencepiece"; }
  int64_t vocabulary() const override { return static_cast<int64_t>(model_.tokens.size()); }
  ContentHash identity() const override { return identity_; }
  void encode(std::string_view text, std::vector<uint32_t>& ids) const override;
  /// Control pieces decode to nothing.
  void decode(uint32_t id, std::string& text) const override;
  std::optional<uint32_t> end_of_text() const override { return model_.end_of_text; }
  std::optional<uint32_t> begin_of_text() const override { return model_.begin_of_text; }
  bool adds_space() const override { return model_.add_dummy_prefix; }
  std::vector<WrittenToken> written_tokens() const override;
  /// Writes tokenizer.model, and the same for Hugging Face.
  std::vector<std::string> save(const std::filesystem::path& folder) const override;

 private:
  void encode_word(std::string_view marked, std::vector<uint32_t>& ids) const;
  void encode_marked(std::string_view marked, std::vector<uint32_t>& ids) const;

  std::string bytes_;
  ContentHash identity_;
  SentencePieceModel model_;
};

}  // namespace lockstep::train
