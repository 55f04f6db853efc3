#pragma once

#include <optional>
#include <string>

#include "core/dispatch/value.h"

namespace lockstep::conformance {

/// Describes the first difference between two tensors, or returns nothing when they agree: same
/// shape, NaN where NaN is wanted, infinities equal, |got - want| <= 1e-5 + 1e-4 |want| for floats,
/// integers and bools exact. Elements are compared as numbers: `want` may be stored in another
/// dtype.
std::optional<std::string> difference(const Tensor& got, const Tensor& want);

/// Compares results that may be numbers instead of tensors.
std::optional<std::string> difference(const Value& got, const Value& want);

}  // namespace lockstep::conformance
