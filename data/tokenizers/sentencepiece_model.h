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

/// U+2581, which stands for a space in SentencePiece's texts.
inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

/// A SentencePiece model of the BPE kind with byte fallback and without replacement rules, as those
/// of Llama and of train_sentencepiece.
struct SentencePieceModel {
  std::vector<std::string> tokens;          ///< by id, decoded: marks as spaces, <0x41> as a byte
  std::array<uint32_t, 256> byte_tokens{};  ///< ids of <0x00> ... <0xFF>
  /// Rank and id of every normal piece, by its text with marks. Equal scores share a rank.
  std::unordered_map<std::string, Merge> pieces;
  std::optional<uint32_t> begin_of_text;
  std::optional<uint32_t> end_of_text;
  bool add_dummy_prefix = false;  ///< encoding inserts a mark before each text
  /// No piece holds a mark after another character, so merges never cross the start of a word.
  bool words_are_separate = true;
  /// No piece holds a line end, so merges never cross one.
  bool lines_are_separate = true;
};

/// Parses a tokenizer.model. A pure function; throws DataError that starts with `file` if `bytes`
/// are not a model, or for models of other kinds, naming what is not supported.
SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& file);

}  // namespace lockstep::train
