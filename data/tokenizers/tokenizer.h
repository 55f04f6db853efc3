#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/content_hash.h"

namespace lockstep::train {

/// A token as tokenizer files write it.
struct WrittenToken {
  enum class Kind { kNormal, kByte, kControl, kUnknown, kUserDefined };
  std::string text;
  float score = 0;  ///< SentencePiece: the higher, the earlier it is merged
  Kind kind = Kind::kNormal;
};

/// Converts text to token ids and back. Any bytes can be encoded, UTF-8 or not, and decoding
/// restores them exactly. Implementations are immutable, so all members are safe to call from many
/// threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Kind of the tokenizer: "byte", "bpe", "sentencepiece" or "hugging_face".
  virtual std::string_view name() const = 0;
  /// Size of the vocabulary: ids lie in [0, vocabulary()).
  virtual int64_t vocabulary() const = 0;
  /// Tokenizers with equal identities give equal ids for every text.
  virtual ContentHash identity() const = 0;

  /// Appends the ids of `text` to `ids`. Text that spells a special token is encoded as ordinary
  /// text.
  virtual void encode(std::string_view text, std::vector<uint32_t>& ids) const = 0;
  /// Appends the ids with special tokens that the text spells as theirs: with every kEndOfText as
  /// end_of_text, if there is one, or with all that the tokenizer knows.
  virtual void encode_with_special(std::string_view text, std::vector<uint32_t>& ids) const;
  /// Appends the bytes that `id` stands for, which need not be whole characters. Throws DataError
  /// for an id outside the vocabulary.
  virtual void decode(uint32_t id, std::string& text) const = 0;
  /// The id that ends a document, if the vocabulary has one.
  virtual std::optional<uint32_t> end_of_text() const = 0;
  /// The id that begins a text, if the vocabulary has one; `encode` does not add it. GPT-2's is
  /// end_of_text.
  virtual std::optional<uint32_t> begin_of_text() const { return end_of_text(); }
  /// Whether `encode` puts a space before every text, as some SentencePiece models do.
  virtual bool adds_space() const { return false; }

  /// llama.cpp's name for how a text is split before bytes are merged; empty if it has none.
  virtual std::string_view pre_tokenizer() const { return "gpt-2"; }
  /// All tokens in the order of their ids: bytes as GPT-2's files write them, pieces with marks.
  virtual std::vector<WrittenToken> written_tokens() const = 0;
  /// The merges of a BPE tokenizer in the order of rank, "left right"; none for other kinds.
  virtual std::vector<std::string> merges() const { return {}; }

  /// Writes the files that load_tokenizer and Hugging Face's AutoTokenizer need to `folder`, which
  /// must exist, and returns their names. Throws DataError if they cannot be written.
  virtual std::vector<std::string> save(const std::filesystem::path& folder) const = 0;
};

/// The text that encode_special takes for the end of a document.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

std::vector<uint32_t> encode(const Tokenizer& tokenizer, std::string_view text);
/// Returns the ids with those of special tokens (Tokenizer::encode_with_special).
std::vector<uint32_t> encode_special(const Tokenizer& tokenizer, std::string_view text);
/// Appends the ids of a text that follows another one: without the space that `encode` puts before
/// a text (adds_space). `special`: with those of special tokens, as encode_special.
void encode_continued(const Tokenizer& tokenizer, std::string_view text, bool special,
                      std::vector<uint32_t>& ids);
/// Decodes ids that start at the beginning of a text: drops the space that `encode` inserted there.
std::string decode(const Tokenizer& tokenizer, std::span<const uint32_t> ids);

/// Loads the tokenizer in `folder`: tokenizer.model (SentencePiece); tokenizer.json of Hugging
/// Face, unless it is what `save` writes for bytes or for the files beside it; vocab.json with
/// merges.txt or encoder.json with vocab.bpe (GPT-2's BPE); or the byte tokenizer if none of them
/// exists. Throws DataError for incomplete or malformed files.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder);
/// As above, but null if the folder says nothing of a tokenizer that could be loaded: the byte
/// tokenizer is told by the tokenizer.json that it saves. One that is damaged or of an unsupported
/// kind could not be.
std::unique_ptr<Tokenizer> find_tokenizer(const std::filesystem::path& folder);

}  // namespace lockstep::train
