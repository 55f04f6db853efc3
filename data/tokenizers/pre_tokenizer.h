#pragma once

#include <cstddef>
#include <string_view>

namespace lockstep::train {

/// The end of the piece that starts at `begin` (< text.size()) when `text` is cut as GPT-2 cuts it
/// before merging, that is by the first match of
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// Pieces follow each other without gaps. Bytes that are not UTF-8 count as neither letter, number
/// nor white space. Looks at text[begin, ...) only, so pieces do not depend on what went before.
size_t gpt2_piece_end(std::string_view text, size_t begin);

}  // namespace lockstep::train
