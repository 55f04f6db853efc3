#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// Something that the bits of results follow, besides a program and what it is given: a library's
/// version, the instructions it uses.
struct ArithmeticFact {
  std::string name;   ///< "oneDNN"
  std::string value;  ///< "2.6.0 with avx512_core"
  friend bool operator==(const ArithmeticFact&, const ArithmeticFact&) = default;
};

/// All of this process: "lockstep", "compiler" and "C library" of the build, then what kernels have
/// told, by name. The number of threads is none: no result depends on it. Thread-safe.
std::vector<ArithmeticFact> arithmetic_facts();

/// For what computes and stays loaded: tells one more. `value` is called whenever facts are asked
/// for, by any thread. Always true, so that it can initialise a variable of a file.
bool tell_arithmetic(std::string name, std::string (*value)());

}  // namespace lockstep
