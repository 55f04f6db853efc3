#pragma once

#include "data/tokenizers/added_tokens.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/tokenizer_json.h"

namespace lockstep::train {

class TokenMemo;

/// The tokenizer of a tokenizer.json, as Hugging Face's library `tokenizers` writes it. For UTF-8
/// texts it gives the same ids as the library's `encode(text, add_special_tokens=False)`: `encode`
/// as with `encode_special_tokens` set, `encode_with_special` as without. Truncation and padding
/// that the file asks for are not done. Decoding gives all bytes back but the white space that
/// added tokens take (lstrip, rstrip) and, with byte fallback, U+2581, which stands for a space.
class JsonTokenizer : public Tokenizer {
 public:
  static constexpr const char* kFileName = "tokenizer.json";

  /// Reads tokenizer.json, and tokenizer_config.json beside it if that is there, which names the
  /// tokens that begin and end a text. Throws DataError naming the file and what is wrong with it
  /// or not supported.
  explicit JsonTokenizer(const std::filesystem::path& file);
  /// As above, from the contents of the files; an empty `config` is none. `file` names the
  /// tokenizer in errors.
  JsonTokenizer(std::string tokenizer, std::string config, const std::string& file);

  std::string_view name() const override { return "hugging_face"; }
  int64_t vocabulary() const override { return std::ssize(content_.vocabulary.tokens); }
  ContentHash identity() const override { return identity_; }
  void encode(std::string_view text, std::vector<uint32_t>& ids) const override;
  void encode_with_special(std::string_view text, std::vector<uint32_t>& ids) const override;
  void decode(uint32_t id, std::string& text) const override;
  /// The eos_token of tokenizer_config.json, or else a special token that is known for one.
  std::optional<uint32_t> end_of_text() const override { return end_of_text_; }
  std::optional<uint32_t> begin_of_text() const override {
    return begin_of_text_ ? begin_of_text_ : end_of_text_;
  }
  bool adds_space() const override { return content_.mark != TokenizerJson::Mark::kNever; }
  std::string_view pre_tokenizer() const override;
  std::vector<WrittenToken> written_tokens() const override;
  std::vector<std::string> merges() const override;
  /// Writes tokenizer.json and tokenizer_config.json, byte for byte as they were read.
  std::vector<std::string> save(const std::filesystem::path& folder) const override;

 private:
  std::optional<uint32_t> special(const std::optional<std::string>& named,
                                  std::initializer_list<std::string_view> known) const;
  void encode(std::string_view text, bool find_special, std::vector<uint32_t>& ids) const;
  std::string with_marks(std::string_view text, bool is_first) const;
  void append_stretch(std::string_view text, TokenMemo& memo, std::vector<uint32_t>& ids) const;
  size_t piece_end(std::string_view text, size_t begin) const;
  void append_piece(std::string_view piece, std::vector<uint32_t>& ids) const;
  void append_marked(std::string_view marked, std::vector<uint32_t>& ids) const;

  std::string text_;
  std::string config_;
  ContentHash identity_;
  TokenizerJson content_;
  AddedTokenFinder first_;       ///< in the text as it is
  AddedTokenFinder normalized_;  ///< in what is left, with marks for spaces
  std::optional<uint32_t> begin_of_text_;
  std::optional<uint32_t> end_of_text_;
  bool words_are_separate_ = true;  ///< no token has a mark behind another character
};

}  // namespace lockstep::train
