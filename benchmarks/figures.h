#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace lockstep {

/// Keeps the compiler from removing the computation of `value`.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

/// Prints figures by name: as one JSON object, or one per line.
inline void print_figures(const nlohmann::ordered_json& figures, bool json) {
  if (json) {
    fmt::print("{}\n", figures.dump());
    return;
  }
  for (const auto& [name, value] : figures.items()) {
    fmt::print("{:<36} {:8.1f}\n", name, value.get<double>());
  }
}

}  // namespace lockstep
