#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizers/bpe_vocabulary.h"

namespace lockstep::train {

/// What a tokenizer.json of Hugging Face's library `tokenizers` says, checked: byte-level BPE as of
/// GPT-2 and Llama 3, or BPE over characters with byte fallback as of Llama 2.
struct TokenizerJson {
  /// How a text is split before merging.
  enum class Split {
    kNone,    ///< not at all
    kGpt2,    ///< gpt2_piece_end
    kLlama3,  ///< llama3_piece_end, up to three digits together
    kQwen2,   ///< llama3_piece_end, single digits
  };
  /// Where U+2581, which stands for a space, is put before a text (byte fallback only).
  enum class Mark { kNever, kFirst, kAlways };
  /// A token that is found in the text before it is split.
  struct Added {
    uint32_t id = 0;
    std::string text;
    bool special = false;     ///< found only by encode_with_special
    bool left = false;        ///< takes the white space before it
    bool right = false;       ///< takes the white space behind it
    bool normalized = false;  ///< found after those that are not, in what is left
  };

  bool byte_fallback = false;
  Split split = Split::kNone;
  bool whole_pieces = false;  ///< a piece that is a token is not merged ("ignore_merges")
  Mark mark = Mark::kNever;
  /// Texts, and added tokens that are found in what is left of them, are brought into Unicode's
  /// normal form C.
  bool composes = false;
  /// Marks are set before normalized added tokens are looked for, and one is put before a text even
  /// if it begins with one.
  bool normalizes = false;
  BpeVocabulary vocabulary;  ///< tokens decoded, those of `added` included
  /// The model's tokens: as bytes, or with byte fallback as written.
  std::unordered_map<std::string, uint32_t> ids;
  std::vector<Added> added;
};

/// Reads tokenizer.json. A pure function; throws DataError that starts with `file` and states what
/// is wrong, or names the part of the tokenizer that is not supported.
TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& file);

}  // namespace lockstep::train
