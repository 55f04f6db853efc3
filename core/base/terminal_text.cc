#include "core/base/terminal_text.h"

#include <algorithm>
#include <utility>

#include "core/base/utf8.h"

namespace lockstep {
namespace {

constexpr uint32_t kPictures = 0x2400;  // of the characters 0 to 31
constexpr uint32_t kDeletePicture = 0x2421;

/// Length of the UTF-8 sequence that starts with `byte`; 1 for bytes that start none.
size_t sequence_length(unsigned char byte) {
  if (byte >= 0xf0 && byte <= 0xf4) return 4;
  if (byte >= 0xe0) return byte < 0xf0 ? 3 : 1;
  return byte >= 0xc2 ? 2 : 1;
}

/// Whether `text` may be the begin of a character whose rest has not come yet.
bool may_go_on(std::string_view text) {
  if (text.size() >= sequence_length(static_cast<unsigned char>(text[0]))) return false;
  for (const char c : text.substr(1)) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) return false;
  }
  return true;
}

uint32_t shown(const CodePoint& point) {
  if (!point.valid || (point.value >= 0x80 && point.value < 0xa0)) return CodePoint::kInvalid;
  if (point.value == 0x7f) return kDeletePicture;
  const bool is_control = point.value < 0x20 && point.value != '\n' && point.value != '\t';
  return is_control ? kPictures + point.value : point.value;
}

}  // namespace

std::string TerminalText::add(std::string_view piece) {
  const std::string text = std::exchange(held_, {}) + std::string(piece);
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (!point.valid && may_go_on(std::string_view(text).substr(at))) {
      held_ = text.substr(at);
      break;
    }
    append_utf8(shown(point), result);
    at += static_cast<size_t>(point.length);
  }
  return result;
}

std::string TerminalText::finish() {
  std::string result;
  for (size_t i = 0; i < held_.size(); ++i) append_utf8(CodePoint::kInvalid, result);
  held_.clear();
  return result;
}

std::string terminal_text(std::string_view text) {
  TerminalText filter;
  std::string result = filter.add(text);
  return result + filter.finish();
}

std::string folded(std::string_view text, size_t columns, size_t indent) {
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    size_t taken = 0;  // columns of what precedes the rest of the line
    while (taken + line.size() > columns) {
      // The last space that leaves no more than fits, else the first; not those of an indent.
      const size_t words = std::min(line.find_first_not_of(' '), line.size());
      size_t at = line.rfind(' ', columns - std::min(taken, columns));
      if (at == line.npos || at < words) at = line.find(' ', words);
      if (at == line.npos) break;
      result.append(line.substr(0, at)).append(1, '\n').append(indent, ' ');
      line.remove_prefix(at + 1);
      taken = indent;
    }
    result.append(line);
    if (end < text.size()) result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace lockstep
