#include "data/sample_origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "data/token_array.h"
#include "data/tokenized_text.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {
namespace {

/// Follows tokens through the documents they were made of, one after the other.
class Reader {
 public:
  Reader(const Documents& documents, const Tokenizer& tokenizer)
      : documents_(documents), tokenizer_(tokenizer) {}

  void pass(uint32_t token) {
    if (token == tokenizer_.end_of_text()) return end_document();
    text_.clear();
    tokenizer_.decode(token, text_);
    int64_t size = std::ssize(text_);
    // `encode` began each document with a space of its own, which another may follow.
    if (begins_ && tokenizer_.adds_space() && text_.starts_with(' ')) --size;
    begins_ = begins_ && text_.empty();
    byte_ += size;
    while (document_ + 1 < documents_.count() && byte_ >= size_of(document_)) {
      byte_ -= size_of(document_++);
      begins_ = byte_ == 0;
    }
  }
  SampleOrigin here() const {
    return {.file = documents_.path(document_).string(),
            .unit = "byte",
            .first = byte_,
            .line = documents_.line(document_)};
  }

 private:
  /// The token between documents is where one begins, also behind a text of which the tokenizer has
  /// made a shorter or longer one.
  void end_document() {
    while (ended_ + 1 < documents_.count() && !is_alone(ended_)) ++ended_;
    ended_ = std::min(ended_ + 1, documents_.count() - 1);
    document_ = ended_;
    byte_ = 0;
    begins_ = true;
  }
  bool is_alone(size_t document) const {
    return tokenizer_.end_of_text() && documents_.ends_with_token(document);
  }
  /// Bytes of a document that are in its tokens.
  int64_t size_of(size_t document) const {
    return std::ssize(is_alone(document) ? documents_.text(document)
                                         : documents_.text_and_separator(document));
  }

  const Documents& documents_;
  const Tokenizer& tokenizer_;
  size_t ended_ = 0;  ///< documents that ended, by the tokens between them
  size_t document_ = 0;
  int64_t byte_ = 0;    ///< in it
  bool begins_ = true;  ///< no token of it has passed
  std::string text_;
};

}  // namespace

std::string file_and_line(const SampleOrigin& origin) {
  std::string text =
      origin.line == 0 ? origin.file : fmt::format("{}:{}", origin.file, origin.line);
  if (origin.others > 0) {
    text += fmt::format(" and {} other{}", origin.others, origin.others == 1 ? "" : "s");
  }
  return text;
}

std::vector<SampleOrigin> origins_in(const Documents& documents, const TokenArray& tokens,
                                     const Tokenizer& tokenizer, std::span<const int64_t> offsets) {
  std::vector<size_t> order(offsets.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return offsets[i]; });
  std::vector<SampleOrigin> origins(offsets.size());
  Reader reader(documents, tokenizer);
  int64_t next = 0;
  for (const size_t i : order) {
    while (next < offsets[i]) reader.pass(tokens[next++]);
    origins[i] = reader.here();
  }
  return origins;
}

}  // namespace lockstep::train
