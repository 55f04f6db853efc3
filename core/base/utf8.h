#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// One code point of a UTF-8 text and its length in bytes.
struct CodePoint {
  /// Value of a byte that belongs to no valid code point (U+FFFD, the replacement character).
  static constexpr uint32_t kInvalid = 0xfffd;
  uint32_t value = kInvalid;
  int length = 1;
  bool valid = false;
};

/// Decodes the code point at `text[at]` (at < text.size()). Overlong forms, surrogates and values
/// above U+10FFFF are invalid; an invalid sequence is consumed one byte at a time.
CodePoint code_point_at(std::string_view text, size_t at);

/// Whether the byte continues a code point that began before it.
constexpr bool continues_utf8(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

/// Returns the index of the first byte of `text` that belongs to no valid code point; text.size()
/// if there is none.
size_t first_invalid_utf8(std::string_view text);

/// Appends `code_point` in UTF-8.
void append_utf8(uint32_t code_point, std::string& text);

}  // namespace lockstep
