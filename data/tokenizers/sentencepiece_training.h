#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::train {

/// Learns a model of at most `vocabulary` pieces from `text`: <unk>, <s>, </s>, the 256 bytes,
/// merges of up to 16 characters in the order of how often they occur, and the commonest
/// characters, which together cover 99.95 % of the text. Merges stay within the words of
/// gpt2_piece_end. Fewer pieces come out when no pair occurs twice. Returns the bytes of a
/// tokenizer.model, the same for the same text. Throws DataError if the vocabulary is too small to
/// hold bytes and characters.
std::string train_sentencepiece(std::string_view text, int64_t vocabulary);

}  // namespace lockstep::train
