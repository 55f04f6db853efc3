#include "core/ops/matmul/einsum_equation.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/base/check.h"

namespace lockstep {

namespace {

EinsumLetters parse_letters(std::string_view equation, std::string_view part) {
  EinsumLetters letters;
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] == ' ') continue;
    if (part.substr(i, 3) == "...") {
      LS_CHECK(letters.find(kEinsumEllipsis) == std::string::npos, ShapeError,
               "[einsum] \"...\" appears twice in \"{}\" of \"{}\".", part, equation);
      letters.push_back(kEinsumEllipsis);
      i += 2;
      continue;
    }
    LS_CHECK(std::isalpha(static_cast<unsigned char>(part[i])), ShapeError,
             "[einsum] expected letters or \"...\" in \"{}\", got '{}'.", equation, part[i]);
    letters.push_back(part[i]);
  }
  return letters;
}

/// "..." if any operand has it, then the letters that occur once.
EinsumLetters implied_result(const std::vector<EinsumLetters>& operands) {
  std::array<size_t, 256> times{};
  for (const EinsumLetters& letters : operands) {
    for (const char letter : letters) ++times[static_cast<unsigned char>(letter)];
  }
  EinsumLetters result;  // '.' is below all letters
  for (size_t code = 0; code < times.size(); ++code) {
    const char letter = static_cast<char>(code);
    if (times[code] == 1 || (letter == kEinsumEllipsis && times[code] > 0)) {
      result.push_back(letter);
    }
  }
  return result;
}

}  // namespace

EinsumEquation parse_einsum(std::string_view text) {
  EinsumEquation equation;
  const size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  while (true) {
    const size_t comma = left.find(',');
    equation.operands.push_back(parse_letters(text, left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (arrow == std::string_view::npos) {
    equation.result = implied_result(equation.operands);
    return equation;
  }
  equation.result = parse_letters(text, text.substr(arrow + 2));
  for (const char letter : equation.result) {
    const auto has = [letter](const EinsumLetters& operand) {
      return operand.find(letter) != std::string::npos;
    };
    LS_CHECK(std::count(equation.result.begin(), equation.result.end(), letter) == 1, ShapeError,
             "[einsum] '{}' appears twice in the result of \"{}\".", letter, text);
    LS_CHECK(letter == kEinsumEllipsis ||
                 std::any_of(equation.operands.begin(), equation.operands.end(), has),
             ShapeError, "[einsum] '{}' of the result appears in no operand of \"{}\".", letter,
             text);
  }
  return equation;
}

}  // namespace lockstep
