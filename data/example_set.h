#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/content_hash.h"
#include "data/example_reader.h"
#include "data/sample_origin.h"
#include "data/token_cache.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {

/// What is done with an example that has more tokens than a row.
enum class LongExample {
  kCut,       ///< its end is left out, and all of it if nothing that counts remains
  kLeaveOut,  ///< it is left out
  kRefuse,    ///< it is an error
};

/// How examples become tokens.
struct ExampleEncoding {
  std::shared_ptr<const Tokenizer> tokenizer;
  /// Whether each example begins with the tokenizer's begin_of_text.
  bool begin_of_text = false;
  /// Text behind a completion, counted as part of it. Empty: the tokenizer's end_of_text, or a line
  /// end where it has none. Conversations end with their last message.
  std::string end = {};
  int64_t longest = 0;  ///< tokens that fit into a row
  LongExample too_long = LongExample::kCut;
};

/// Tokenized examples in the order of their files, in memory. Of each token it is known whether it
/// counts in the loss; in every example some do, none of which is its first.
class ExampleSet {
 public:
  ExampleSet() = default;
  /// Reads the files of find_files(pattern). Throws DataError as ExampleReader, for an example that
  /// is too long and refused, naming file and line, or if no example is left; ConfigError if
  /// `begin_of_text` is asked for and the tokenizer has none. The result is read from `cache` or
  /// stored there, except for the byte tokenizer, which takes no longer than that.
  ExampleSet(const std::string& pattern, const ExampleForm& form, const ExampleEncoding& encoding,
             const TokenCache& cache = TokenCache({}));

  int64_t count() const { return std::ssize(examples_); }
  std::span<const uint32_t> tokens(int64_t example) const;
  /// Returns for each token of the example 1 if it counts, otherwise 0.
  std::span<const uint8_t> counted(int64_t example) const;
  /// The line that an example was read from.
  SampleOrigin origin(int64_t example) const;

  int64_t tokens() const { return std::ssize(tokens_); }
  int64_t counted_tokens() const;
  /// Moves the last `count` examples, fewer than all, to a set of their own.
  ExampleSet take_last(int64_t count);
  ContentHash hash() const;
  /// What a person should know: how many examples were cut, left out and skipped.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Example {
    int64_t begin;  ///< of its tokens in all
    int64_t end;
    uint32_t file;
    int64_t line;
  };
  void read(const std::string& pattern, const ExampleForm& form, const ExampleEncoding& encoding);
  /// Takes the content of a cache entry that was made of `files_`; false if it is none.
  bool take(std::span<const std::byte> entry, int64_t vocabulary);
  void store(const TokenCache& cache, const ContentHash& key) const;
  void add(const std::vector<ExamplePart>& parts, bool ends, const ExampleEncoding& encoding);
  /// Keeps the first `tokens`.
  void shorten(int64_t tokens);

  std::vector<uint32_t> tokens_;
  std::vector<uint8_t> counted_;
  std::vector<Example> examples_;
  std::vector<std::filesystem::path> files_;
  std::vector<std::string> notes_;
};

}  // namespace lockstep::train
