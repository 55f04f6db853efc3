#pragma once

#include <string_view>

#include "kernels/common/functor_name.h"

namespace lockstep::functors {

/// A functor that refers to something that lives as long as the call, such as an error flag.
template <class F>
concept RefersOutside = requires {
  F::kRefersOutside;
};

}  // namespace lockstep::functors

// Compilers leave out of a type's name the namespaces that it shares with the function.
namespace lockstep::kernel_text {

/// The functor's type as C++ writes it, "lockstep::functors::Add", for kernels that are made at run
/// time. Empty for functors without a FunctorName, which may be of one source alone.
template <class F>
consteval std::string_view functor_type() {
  if constexpr (!functors::Named<F>) return {};
  std::string_view text = __PRETTY_FUNCTION__;  // "... [with F = NAME; ...]" or "... [F = NAME]"
  text.remove_prefix(text.find("F = ") + 4);
  return text.substr(0, text.find_first_of(";]"));
}

}  // namespace lockstep::kernel_text
