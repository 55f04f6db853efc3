#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/token_array.h"
#include "data/token_cache.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {

/// Text files in a fixed order, in memory: one document each.
class Documents {
 public:
  /// Reads what find_files(pattern) names. Empty files are left out. Throws DataError naming what
  /// is missing or unreadable, or if there is no text at all.
  explicit Documents(const std::string& pattern) : Documents(std::vector{pattern}) {}
  /// The same for several patterns, one after the other.
  explicit Documents(const std::vector<std::string>& patterns);

  /// How the text was named, for messages.
  const std::string& name() const { return name_; }
  const std::vector<std::string>& texts() const { return texts_; }
  int64_t bytes() const { return bytes_; }
  /// Throws DataError naming file and byte if one holds a zero byte, as no text does but most
  /// other files do.
  void check_is_text() const;
  ContentHash hash() const;
  /// All texts with a line end after each: what a SentencePiece model is trained on.
  std::string joined() const;

 private:
  std::string name_;
  std::vector<std::filesystem::path> files_;
  std::vector<std::string> texts_;
  int64_t bytes_ = 0;
};

/// Documents as tokens: those to train on, then those held out.
struct TokenizedText {
  TokenArray tokens;
  int64_t training_tokens = 0;

  TokenArray training() const { return tokens.slice(0, training_tokens); }
  /// The held-out tokens after the one before them, which is their first context; empty if none
  /// are held out.
  TokenArray held_out() const;
};

/// Encodes the documents one after the other, with the tokenizer's end_of_text (if it has one)
/// between two. The last `held_out_bytes` of all their text are encoded apart, so that training
/// sees nothing of them; a character is not cut, so the held-out text can be up to three bytes
/// shorter. Read from `cache` if it is there, else stored in it. Throws DataError unless
/// 0 <= held_out_bytes < documents.bytes(), and, but for bytes as tokens, for what is not text.
TokenizedText tokenize(const Documents& documents, int64_t held_out_bytes,
                       const Tokenizer& tokenizer, const TokenCache& cache);

}  // namespace lockstep::train
