#pragma once

#include <string>
#include <vector>

#include "core/tensor/device.h"

namespace lockstep {

/// Something that the bits of results follow, besides a program and what it is given: a library's
/// version, the instructions it uses.
struct ArithmeticFact {
  std::string name;   ///< "oneDNN"
  std::string value;  ///< "2.6.0 with avx512_core"
  friend bool operator==(const ArithmeticFact&, const ArithmeticFact&) = default;
};

/// All of this process for what it computes on `device`: "lockstep", "compiler" and "C library" of
/// the build, what the cpu's kernels have told, by name, and then what those of that type of device
/// have. The number of threads is none: no result depends on it. Thread-safe.
std::vector<ArithmeticFact> arithmetic_facts(Device device = kCPU);

/// For what computes and stays loaded: tells one more. `value` is called whenever facts are asked
/// for, by any thread. Always true, so that it can initialise a variable of a file.
bool tell_arithmetic(std::string name, std::string (*value)());
/// The same of what only devices of one type compute by; `value` gets the device's number.
bool tell_arithmetic(DeviceType type, std::string name, std::string (*value)(int index));

}  // namespace lockstep
