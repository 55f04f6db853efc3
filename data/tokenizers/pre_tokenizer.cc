#include "data/tokenizers/pre_tokenizer.h"

#include <array>
#include <string>

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

/// The length of 's, 't, 're, ... at the start of `text` in upper or lower case; 0 if there is
/// none.
size_t contraction_in_any_case(std::string_view text) {
  if (text[0] != '\'') return 0;
  // U+017F, the long s, is a lower case of S.
  constexpr std::string_view kLongS = "\u017f";
  if (text.substr(1).starts_with(kLongS)) return 1 + kLongS.size();
  std::string folded("'");
  for (const char c : text.substr(1, 2)) {
    folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return contraction(folded);
}

bool is_line_end(char c) { return c == '\r' || c == '\n'; }

/// Returns the end behind the last line end in the run of white space at `begin`; `begin` if it has
/// none.
size_t last_line_end(std::string_view text, size_t begin) {
  const size_t end = run_end(text, begin, CharClass::kSpace);
  const size_t last = text.substr(begin, end - begin).find_last_of("\r\n");
  return last == text.npos ? begin : begin + last + 1;
}

/// Returns the end of punctuation that starts at `at`, with the line ends behind it.
size_t other_end(std::string_view text, size_t at) {
  at = run_end(text, at, CharClass::kOther);
  while (at < text.size() && is_line_end(text[at])) ++at;
  return at;
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

size_t llama3_piece_end(std::string_view text, size_t begin, int digits) {
  if (const size_t length = contraction_in_any_case(text.substr(begin))) return begin + length;
  const Character first = character_at(text, begin);
  const size_t second = begin + first.length;
  if (first.kind == CharClass::kLetter) return run_end(text, second, CharClass::kLetter);
  if (first.kind == CharClass::kNumber) {
    size_t at = second;
    for (int i = 1; i < digits && at < text.size(); ++i) {
      const Character next = character_at(text, at);
      if (next.kind != CharClass::kNumber) break;
      at += next.length;
    }
    return at;
  }
  const bool is_end = second == text.size();
  const CharClass next = is_end ? CharClass::kSpace : character_at(text, second).kind;
  // Any one character but a line end may lead a word.
  if (next == CharClass::kLetter && !is_line_end(text[begin])) {
    return run_end(text, second, CharClass::kLetter);
  }
  if (first.kind == CharClass::kOther) return other_end(text, begin);
  if (text[begin] == ' ' && next == CharClass::kOther) return other_end(text, second);
  const size_t line_end = last_line_end(text, begin);
  return line_end > begin ? line_end : space_end(text, begin);
}

}  // namespace lockstep::train
