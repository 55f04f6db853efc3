#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::forms {

/// What decides which of several functions of one name a call means.
struct Overload {
  /// Types of the parameters without const, references and std::optional, which a call does not
  /// tell apart: "Tensor", "IntList", "bool".
  std::vector<std::string> kinds;
  size_t required = 0;  ///< parameters without a default
};
/// Functions by name.
using Overloads = std::map<std::string, std::vector<Overload>>;

/// A C++ type as `Overload::kinds` has it: "Tensor" for "const Tensor&" and "OptionalTensor".
std::string kind_of_type(std::string_view type);

/// Splits at commas outside of brackets; surrounding spaces are dropped.
std::vector<std::string> split_list(std::string_view text);

/// The functions that a header or a class body declares or defines. Templates, operators and
/// constructors are left out.
Overloads declared_functions(std::string_view text);

/// The text between "class NAME" 's braces. Throws Error when there is none.
std::string class_body(std::string_view text, std::string_view name);

/// Makes `added` unmistakable beside `present`: parameters lose their defaults until no call fits
/// both equally well. Returns false when even a call with all arguments would.
bool fit_in(const std::vector<Overload>& present, Overload& added);

}  // namespace lockstep::forms
