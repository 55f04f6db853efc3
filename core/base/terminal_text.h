#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Makes text of any origin safe to show on a terminal: control characters other than line ends and
/// tabs become their pictures (U+241B for escape), and bytes that are not UTF-8 and the control
/// characters U+0080 to U+009F become U+FFFD. Text may come in pieces that end within a character.
class TerminalText {
 public:
  /// Returns what can be shown of `piece` and of what earlier calls held back.
  std::string add(std::string_view piece);
  /// Returns what was held back: the bytes of an unfinished character, as U+FFFD each.
  std::string finish();

 private:
  std::string held_;
};

/// The whole of `text`, made safe.
std::string terminal_text(std::string_view text);

/// Breaks lines of more than `columns` bytes at single spaces; what goes on begins with `indent`
/// spaces. A longer word stays whole.
std::string folded(std::string_view text, size_t columns, size_t indent);

}  // namespace lockstep
