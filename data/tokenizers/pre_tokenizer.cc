#include "data/tokenizers/pre_tokenizer.h"

#include <array>

#include "core/base/utf8.h"
#include "data/tokenizers/unicode_classes.h"

namespace lockstep::train {
namespace {

struct Character {
  CharClass kind;
  size_t length;
};

Character character_at(std::string_view text, size_t at) {
  const CodePoint point = code_point_at(text, at);
  const CharClass kind = point.valid ? char_class(point.value) : CharClass::kOther;
  return {kind, static_cast<size_t>(point.length)};
}

/// Returns the end of the run of characters of class `kind` that starts at `at`.
size_t run_end(std::string_view text, size_t at, CharClass kind) {
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (next.kind != kind) break;
    at += next.length;
  }
  return at;
}

/// The length of 's, 't, 're, ... at the start of `text`; 0 if there is none.
size_t contraction(std::string_view text) {
  if (text[0] != '\'') return 0;
  constexpr std::array<std::string_view, 7> kEndings = {"s", "t", "re", "ve", "m", "ll", "d"};
  for (const std::string_view ending : kEndings) {
    if (text.substr(1).starts_with(ending)) return 1 + ending.size();
  }
  return 0;
}

/// Returns the end of a piece of white space: its last character goes to the next piece, unless the
/// run ends the text or has only one character.
size_t space_end(std::string_view text, size_t begin) {
  size_t at = begin;
  size_t last = begin;
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (next.kind != CharClass::kSpace) break;
    last = at;
    at += next.length;
  }
  return at == text.size() || last == begin ? at : last;
}

}  // namespace

size_t gpt2_piece_end(std::string_view text, size_t begin) {
  if (const size_t length = contraction(text.substr(begin))) return begin + length;
  const Character first = character_at(text, begin);
  if (first.kind != CharClass::kSpace) return run_end(text, begin + first.length, first.kind);
  // One plain space may lead a word.
  if (text[begin] == ' ' && begin + 1 < text.size()) {
    const Character next = character_at(text, begin + 1);
    if (next.kind != CharClass::kSpace) return run_end(text, begin + 1 + next.length, next.kind);
  }
  return space_end(text, begin);
}

}  // namespace lockstep::train
