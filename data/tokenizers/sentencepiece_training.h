#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::train {

/// Trains a model of at most `vocabulary` pieces on `text`: <unk>, <s>, </s>, the 256 bytes, merges
/// of up to 16 characters by decreasing frequency, and the most frequent characters, which together
/// cover 99.95 % of the text. Merges stay within the pieces of gpt2_piece_end. Training stops early
/// when no pair occurs twice. Returns the bytes of a tokenizer.model, which depend only on the
/// arguments. Throws DataError if the vocabulary is too small for bytes and characters.
std::string train_sentencepiece(std::string_view text, int64_t vocabulary);

}  // namespace lockstep::train
