#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Parts of the shape rules of random operators, which stand above the operators' blocks.

/// A result of self's dtype and layout.
Outputs like_self(const Tensor& self);
/// The smallest and the largest integer that a dtype can hold.
std::pair<int64_t, int64_t> integer_range(DType dtype);
/// The end of the integers from 0 that the dtype holds exactly, all of them; nothing for int64.
std::optional<int64_t> end_of_exact_integers(DType dtype);

}  // namespace lockstep::rules
