#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::train {

/// The files of a BPE tokenizer, as BpeTokenizer reads them.
struct TrainedBpe {
  std::string vocabulary;  ///< vocab.json
  std::string merges;      ///< merges.txt
};

/// Trains GPT-2's byte-level BPE on `text`: the 256 bytes, merges by decreasing frequency, and
/// <|endoftext|> as the last token; at most `vocabulary` tokens. Merges stay within the pieces of
/// gpt2_piece_end; training stops early when no pair occurs twice. The result depends only on the
/// arguments. Throws DataError for a vocabulary below 257.
TrainedBpe train_bpe(std::string_view text, int64_t vocabulary);

}  // namespace lockstep::train
