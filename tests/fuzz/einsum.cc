#include <set>

#include "core/base/error.h"
#include "core/ops/matmul/einsum_equation.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_einsum(Input input) {
  EinsumEquation equation;
  try {
    equation = parse_einsum(text_of(input));
  } catch (const ShapeError& error) {
    require(std::string(error.what()).starts_with("[einsum] "), "an error names its source");
    return Outcome::kRefused;
  }
  require(!equation.operands.empty(), "an equation has operands");
  std::set<char> known;
  for (const EinsumLetters& letters : equation.operands)
    known.insert(letters.begin(), letters.end());
  std::set<char> seen;
  for (const char letter : equation.result) {
    require(seen.insert(letter).second, "a letter occurs once in the result");
    require(letter == kEinsumEllipsis || known.contains(letter),
            "the result has letters of the operands");
  }
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
