#include "core/tensor/scalar.h"

#include "core/base/check.h"

namespace lockstep {

void detail::throw_number_too_large(uint64_t value) {
  throw DTypeError(fmt::format(
      "[scalar] the number is too large: expected at most 2^63 - 1, got {}. Use a float.", value));
}

std::string to_string(const Scalar& scalar) {
  if (scalar.kind() == DType::kBool) return scalar.to_bool() ? "True" : "False";
  if (!scalar.is_floating()) return fmt::format("{}", scalar.to_int());
  const std::string text = fmt::format("{}", scalar.to_double());
  // "2.0" stays distinct from "2", because the kind of number decides promotion.
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

}  // namespace lockstep
