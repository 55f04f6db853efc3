#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/token_array.h"
#include "data/token_cache.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {

/// Text files in a fixed order, read into memory; each is one document. Cheap to copy: copies share
/// the text.
class Documents {
 public:
  /// Reads the files of find_files(pattern), except empty ones. Throws DataError naming a file that
  /// is missing or unreadable, or if there is no text at all.
  explicit Documents(const std::string& pattern) : Documents(std::vector{pattern}) {}
  /// As above, for several patterns in this order.
  explicit Documents(const std::vector<std::string>& patterns);

  /// The patterns, for messages.
  const std::string& name() const { return name_; }
  size_t count() const { return files_.size(); }
  /// The text of document `i`, from 0; valid while these documents or a copy of them exist.
  std::string_view text(size_t i) const;
  const std::filesystem::path& path(size_t i) const { return files_[i]; }
  /// All texts, one behind the other.
  const std::shared_ptr<const std::string>& whole() const { return whole_; }
  int64_t bytes() const { return std::ssize(*whole_); }
  /// Throws DataError naming file and byte if a document holds a zero byte: text never does, most
  /// other files do.
  void check_is_text() const;
  ContentHash hash() const;
  /// All texts with a line end after each: the training text of a SentencePiece model.
  std::string joined() const;

 private:
  std::string name_;
  std::vector<std::filesystem::path> files_;
  std::vector<size_t> ends_;  ///< of each document in the whole text
  std::shared_ptr<const std::string> whole_;
};

/// The documents' tokens: those for training, then those held out.
struct TokenizedText {
  TokenArray tokens;
  int64_t training_tokens = 0;

  TokenArray training() const { return tokens.slice(0, training_tokens); }
  /// The last training token, as context, and the held-out tokens; empty if none are held out.
  TokenArray held_out() const;
};

/// Reads the content of a cache entry; nothing if it holds no tokens below `vocabulary`. `owner`
/// keeps the bytes alive.
std::optional<TokenizedText> parse_cached_tokens(std::span<const std::byte> bytes,
                                                 std::shared_ptr<const void> owner,
                                                 int64_t vocabulary);

/// Encodes the documents one after the other, separated by the tokenizer's end_of_text (if it has
/// one). The last `held_out_bytes` of the text are encoded separately, so that no training token
/// spans the boundary; it is moved to the next character, so the held-out text can be up to three
/// bytes shorter. The result is read from `cache` or stored there, except for the byte tokenizer:
/// its tokens are the text itself, one byte each.
/// Throws DataError unless 0 <= held_out_bytes < documents.bytes(), and, except for the byte
/// tokenizer, if a document is not text.
TokenizedText tokenize(const Documents& documents, int64_t held_out_bytes,
                       const Tokenizer& tokenizer, const TokenCache& cache);

}  // namespace lockstep::train
