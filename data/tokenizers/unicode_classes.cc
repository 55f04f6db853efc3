#include "data/tokenizers/unicode_classes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "data/tokenizers/unicode_ranges.h"

namespace lockstep::train {
namespace {

bool contains(std::span<const CodePointRange> ranges, uint32_t code_point) {
  const auto after = std::ranges::upper_bound(ranges, code_point, {}, &CodePointRange::first);
  return after != ranges.begin() && code_point <= std::prev(after)->last;
}

constexpr bool is_space(uint32_t c) {
  return c == ' ' || (c >= 0x9 && c <= 0xd) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

CharClass search(uint32_t code_point) {
  if (is_space(code_point)) return CharClass::kSpace;
  if (contains(kLetters, code_point)) return CharClass::kLetter;
  if (contains(kNumbers, code_point)) return CharClass::kNumber;
  return CharClass::kOther;
}

// Code points classified by table: those of at most two bytes in UTF-8, which cover Latin, Greek,
// Cyrillic, Hebrew and Arabic.
constexpr uint32_t kDirect = 0x800;

}  // namespace

CharClass char_class(uint32_t code_point) {
  static const auto kClasses = [] {
    std::array<CharClass, kDirect> classes{};
    for (uint32_t c = 0; c < kDirect; ++c) classes[c] = search(c);
    return classes;
  }();
  return code_point < kDirect ? kClasses[code_point] : search(code_point);
}

}  // namespace lockstep::train
