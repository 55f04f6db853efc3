#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizers/merge_symbols.h"

namespace lockstep::train {

/// The two files of a GPT-2 tokenizer, checked: ids are 0, 1, ..., n - 1, every byte has a token,
/// and every merge joins two tokens into a third.
struct BpeVocabulary {
  std::vector<std::string> tokens;             ///< by id, as bytes
  std::array<uint32_t, 256> byte_tokens{};     ///< ids of the 256 bytes
  std::unordered_map<uint64_t, Merge> merges;  ///< by merge_key of the two parts' ids
  std::optional<uint32_t> end_of_text;         ///< the id of <|endoftext|>

  /// Appends the ids of `piece` after all merges. Throws DataError for a piece of 2^32 bytes.
  void encode(std::string_view piece, std::vector<uint32_t>& ids) const;

  static uint64_t merge_key(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
};

/// `bytes` as the two files write them: each byte as a printable character.
std::string written_bytes(std::string_view bytes);
/// The bytes of a token as the files write it; nothing if one of its characters stands for no byte.
std::optional<std::string> bytes_of_written(std::string_view written);

/// Reads vocab.json (an object from token to id) and merges.txt (an optional line "#version...",
/// then "A B" per line in order of rank). Tokens are written with each byte as a printable
/// character, as GPT-2 does. A pure function; throws DataError that starts with the name of the
/// file and states what is wrong and where.
BpeVocabulary parse_bpe(std::string_view vocabulary, const std::string& vocabulary_file,
                        std::string_view merges, const std::string& merges_file);

}  // namespace lockstep::train
