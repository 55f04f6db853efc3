#include "core/scalar.h"

#include "core/check.h"

namespace lockstep {

std::string to_string(const Scalar& scalar) {
  if (scalar.kind() == DType::kBool) return scalar.to_bool() ? "True" : "False";
  return scalar.is_floating() ? fmt::format("{}", scalar.to_double())
                              : fmt::format("{}", scalar.to_int());
}

}  // namespace lockstep
