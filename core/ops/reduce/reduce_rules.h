#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Parts of the shape rules of reductions, which stand above the operators' blocks.

/// Sizes of the result; an empty list of dimensions means all.
Dims reduced_sizes(std::string_view op, const Tensor& self, IntList dims, bool keepdim);
/// Throws IndexError if a reduced dimension is empty.
void check_not_empty(std::string_view op, const Tensor& self, IntList dims);
/// A result of `dtype` that is also computed in that dtype.
Outputs computed(Dims sizes, DType dtype, const Tensor& self);
/// Rule of sum and prod: the result has the given dtype, by default int64 for bools and integers.
Outputs total_of(std::string_view op, const Tensor& self, IntList dims, bool keepdim,
                 std::optional<DType> dtype);
/// Rule of cumsum and cumprod: as total_of, but with self's sizes.
Outputs running(std::string_view op, const Tensor& self, int64_t dim, std::optional<DType> dtype);

}  // namespace lockstep::rules
