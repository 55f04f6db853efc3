#include "core/base/utf8.h"

#include <array>
#include <cstring>

namespace lockstep {

CodePoint code_point_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1, true};
  int length = 0;
  uint32_t value = 0;
  if (lead >= 0xc2 && lead < 0xe0) {
    length = 2;
    value = lead & 0x1fU;
  } else if (lead >= 0xe0 && lead < 0xf0) {
    length = 3;
    value = lead & 0x0fU;
  } else if (lead >= 0xf0 && lead < 0xf5) {
    length = 4;
    value = lead & 0x07U;
  } else {
    return {};
  }
  if (text.size() - at < static_cast<size_t>(length)) return {};
  for (int i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + static_cast<size_t>(i)]);
    if ((byte & 0xc0) != 0x80) return {};
    value = value << 6 | (byte & 0x3fU);
  }
  constexpr std::array<uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  if (value < kSmallest[static_cast<size_t>(length)] || value > 0x10ffff || surrogate) return {};
  return {value, length, true};
}

size_t first_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    // Eight bytes of ASCII at once: most of what is checked.
    uint64_t word = 0;
    if (text.size() - at >= sizeof word) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080U) == 0) {
        at += sizeof word;
        continue;
      }
    }
    const CodePoint point = code_point_at(text, at);
    if (!point.valid) break;
    at += static_cast<size_t>(point.length);
  }
  return at;
}

void append_utf8(uint32_t c, std::string& text) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xc0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xe0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace lockstep
