#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Stands for "..." among the letters of an operand.
inline constexpr char kEinsumEllipsis = '.';

/// The letters of one operand or of the result, with kEinsumEllipsis for "...".
using EinsumLetters = std::string;

struct EinsumEquation {
  std::vector<EinsumLetters> operands;
  EinsumLetters result;  ///< each letter once: letters of operands and kEinsumEllipsis
};

/// Parses "ij,jk->ik". Without "->" the result is "..." if any operand has it, then the letters
/// that occur once, in alphabetical order. Throws ShapeError for malformed text.
EinsumEquation parse_einsum(std::string_view text);

}  // namespace lockstep
