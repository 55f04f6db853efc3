#include "core/base/json_text.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse(std::string_view text, size_t at, int most) {
  const std::string_view before = text.substr(0, at);
  const auto line = 1 + std::ranges::count(before, '\n');
  // npos + 1 is 0: the first line starts there.
  const size_t column = at - (before.rfind('\n') + 1) + 1;
  throw DataError(
      fmt::format("[json] nested deeper than {} at line {}, column {}: expected at most {} arrays "
                  "and objects inside each other. Is this the right file?",
                  most, line, column, most));
}

}  // namespace

void check_json_nesting(std::string_view text, int most) {
  int depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;  // the next character is escaped
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > most) refuse(text, at, most);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace lockstep
