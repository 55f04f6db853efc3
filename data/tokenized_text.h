#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/json_lines.h"
#include "data/token_array.h"
#include "data/token_cache.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {

/// Texts in a fixed order, read into memory: each text file is one document, and so is each line of
/// a file of JSON lines (data/json_lines.h). Cheap to copy: copies share the text.
class Documents {
 public:
  /// Reads the files of find_files(pattern), except empty ones. Throws DataError naming a file that
  /// is missing or unreadable, or if there is no text at all.
  explicit Documents(const std::string& pattern, JsonLinesOptions json_lines = {})
      : Documents(std::vector{pattern}, std::move(json_lines)) {}
  /// As above, for several patterns in this order.
  explicit Documents(const std::vector<std::string>& patterns, JsonLinesOptions json_lines = {});
  /// A copy of all documents of `parts`, one behind the other.
  static Documents together(std::span<const Documents> parts);

  /// The patterns, for messages.
  const std::string& name() const { return name_; }
  size_t count() const { return documents_.size(); }
  size_t files() const { return files_.size(); }
  /// The text of document `i`, from 0; valid while these documents or a copy of them exist.
  std::string_view text(size_t i) const;
  /// Returns the text with what stands between it and the next document in `whole`: the separator
  /// behind a line of JSON lines, nothing behind a text file and the last document.
  std::string_view text_and_separator(size_t i) const;
  /// Whether a tokenizer with an end_of_text puts that behind document `i`, and not the separator.
  bool ends_with_token(size_t i) const;
  /// Its file, and its line there from 1; 0 for a document that is the whole file.
  const std::filesystem::path& path(size_t i) const { return files_[documents_[i].file]; }
  int64_t line(size_t i) const { return documents_[i].line; }
  /// "FILE" or "FILE:LINE", for messages.
  std::string place(size_t i) const;
  /// All texts, one behind the other, with the separators of JSON lines.
  const std::shared_ptr<const std::string>& whole() const { return whole_; }
  int64_t bytes() const { return std::ssize(*whole_); }
  /// Throws DataError naming file and byte if a document holds a zero byte: text never does, most
  /// other files do.
  void check_is_text() const;
  ContentHash hash() const;
  /// All texts with a line end after each: the training text of a SentencePiece model.
  std::string joined() const;
  /// What a person should know of how the files were read: how many lines were skipped.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Documents() = default;
  struct Document {
    size_t begin;  ///< in the whole text
    size_t end;
    size_t file;
    int64_t line;
  };
  void read_lines(const std::filesystem::path& file, const JsonLinesOptions& options,
                  std::string& whole);

  std::string name_;
  std::vector<std::filesystem::path> files_;  ///< those with documents
  std::vector<Document> documents_;
  bool separator_is_given_ = false;
  std::shared_ptr<const std::string> whole_;
  std::vector<std::string> notes_;
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
/// one) or by what JSON lines have between them. The last `held_out_bytes` of the text are encoded
/// separately, so that no training token spans the boundary; it is moved to the next character, so
/// the held-out text can be up to three bytes shorter. The result is read from `cache` or stored
/// there, except for the byte tokenizer: its tokens are the text itself, one byte each. Throws
/// DataError unless 0 <= held_out_bytes < documents.bytes(), and, except for the byte tokenizer, if
/// a document is not text.
TokenizedText tokenize(const Documents& documents, int64_t held_out_bytes,
                       const Tokenizer& tokenizer, const TokenCache& cache);

}  // namespace lockstep::train
