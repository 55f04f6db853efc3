#pragma once

#include <string>
#include <vector>

#include "core/dispatch/element_loop.h"

namespace lockstep::compiler {

/// C++ that is compiled while the program runs, to a shared library or a module of a GPU.
struct NativeSource {
  std::string text;
  std::vector<std::string> flags;  ///< of the compiler, besides those that make a library
  std::string what;                ///< in lists and messages, on one line: "loop of mul, add, tanh"
  const LoopCompiler* compiler = nullptr;  ///< null: this machine's, to a shared library
};

}  // namespace lockstep::compiler
