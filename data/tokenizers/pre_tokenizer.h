#pragma once

#include <cstddef>
#include <string_view>

namespace lockstep::train {

/// The rules below as tokenizer.json writes them.
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Returns the end of the piece that starts at `begin` (< text.size()) in GPT-2's splitting of
/// `text` before merging, that is of the first match of
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// Pieces are adjacent, without gaps. Bytes that are not UTF-8 count as neither letter, number nor
/// white space. Reads only text[begin, ...), so pieces do not depend on the text before them.
size_t gpt2_piece_end(std::string_view text, size_t begin);

/// Returns the end of a piece as gpt2_piece_end, in Llama 3's splitting, that of OpenAI's cl100k
/// without possessive repetitions:
///   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,DIGITS}|
///   ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
/// where `digits` is 3 for Llama 3 and 1 for Qwen 2.
size_t llama3_piece_end(std::string_view text, size_t begin, int digits);

}  // namespace lockstep::train
