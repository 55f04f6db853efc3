#pragma once

#include <algorithm>

#include "core/dispatch/dispatch.h"
#include "core/dispatch/dispatcher.h"
#include "core/tensor/generator.h"

namespace lockstep {

/// A string that is a template's argument.
template <size_t N>
struct FormName {
  char text[N];
  constexpr FormName(const char (&name)[N]) { std::copy_n(name, N, text); }
};

/// The operator of that name, looked up at the first call. `Signature` is the one it was declared
/// with: the sources in this folder are written from the declarations.
template <class Signature, FormName kName>
TypedOp<Signature> form() {
  static const TypedOp<Signature> op(&dispatcher().find(kName.text));
  return op;
}

}  // namespace lockstep
