#pragma once

#include <string>
#include <vector>

#include "core/tensor/device.h"

namespace lockstep {

/// Something that the exact bits of results depend on, besides the program and its input: a
/// library's version, the instruction set it uses.
struct ArithmeticFact {
  std::string name;   ///< "oneDNN"
  std::string value;  ///< "2.6.0 with avx512_core"
  friend bool operator==(const ArithmeticFact&, const ArithmeticFact&) = default;
};

/// All facts about computation on `device` in this process: "lockstep", "compiler" and "C library"
/// of the build, then those registered for the cpu, by name, then those registered for the device's
/// type. The number of threads is not among them: no result depends on it. Thread-safe.
std::vector<ArithmeticFact> arithmetic_facts(Device device = kCPU);

/// Registers one more fact. `value` is called on any thread that asks for facts, so its library
/// must stay loaded. Returns true, so that it can initialize a namespace-scope variable.
bool register_arithmetic_fact(std::string name, std::string (*value)());
/// Registers a fact about devices of one type only; `value` gets the device's number.
bool register_arithmetic_fact(DeviceType type, std::string name, std::string (*value)(int index));

}  // namespace lockstep
