#pragma once

#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {

/// Every byte is a token; its id is the byte's value.
class ByteTokenizer : public Tokenizer {
 public:
  std::string_view name() const override { return "byte"; }
  int64_t vocabulary() const override { return 256; }
  ContentHash identity() const override;
  void encode(std::string_view text, std::vector<uint32_t>& ids) const override;
  void decode(uint32_t id, std::string& text) const override;
  std::optional<uint32_t> end_of_text() const override { return std::nullopt; }
  std::vector<WrittenToken> written_tokens() const override;
  /// Writes the files for Hugging Face: load_tokenizer needs none.
  std::vector<std::string> save(const std::filesystem::path& folder) const override;
};

}  // namespace lockstep::train
