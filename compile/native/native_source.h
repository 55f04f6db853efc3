#pragma once

#include <string>
#include <vector>

namespace lockstep::compiler {

/// C++ that is compiled while the program runs, to a shared library.
struct NativeSource {
  std::string text;
  std::vector<std::string> flags;  ///< of the compiler, besides those that make a library
  std::string what;                ///< in lists and messages, on one line: "loop of mul, add, tanh"
};

}  // namespace lockstep::compiler
