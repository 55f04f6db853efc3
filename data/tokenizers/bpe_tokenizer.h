#pragma once

#include "data/tokenizers/bpe_vocabulary.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {

/// GPT-2's byte-level BPE (Radford et al. 2019): the text is split into pieces (gpt2_piece_end),
/// and the bytes of each are merged by rank. With GPT-2's own files it gives the same ids as
/// tiktoken.
class BpeTokenizer : public Tokenizer {
 public:
  /// Reads the vocabulary (vocab.json, encoder.json) and the merges (merges.txt, vocab.bpe).
  /// Throws DataError naming the file and what is wrong with it.
  BpeTokenizer(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

  /// As above, from the contents of the files, such as train_bpe returns; `origin` names them in
  /// error messages.
  BpeTokenizer(std::string vocabulary, std::string merges, const std::string& origin);

  std::string_view name() const override { return "bpe"; }
  int64_t vocabulary() const override { return static_cast<int64_t>(content_.tokens.size()); }
  ContentHash identity() const override { return identity_; }
  void encode(std::string_view text, std::vector<uint32_t>& ids) const override;
  void decode(uint32_t id, std::string& text) const override;
  std::optional<uint32_t> end_of_text() const override { return content_.end_of_text; }
  std::vector<WrittenToken> written_tokens() const override;
  std::vector<std::string> merges() const override;
  /// Writes vocab.json and merges.txt, byte for byte as they were read, and the same for Hugging
  /// Face.
  std::vector<std::string> save(const std::filesystem::path& folder) const override;
  /// The tokenizer.json that `save` writes.
  std::string tokenizer_json() const;

 private:
  BpeTokenizer(std::string vocabulary, const std::string& vocabulary_file, std::string merges,
               const std::string& merges_file);

  std::string vocabulary_text_;
  std::string merges_text_;
  ContentHash identity_;
  BpeVocabulary content_;
};

}  // namespace lockstep::train
