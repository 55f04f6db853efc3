#pragma once

#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep::rules {

// Argument checks shared by the shape rules of indexing operators. Each throws, naming `op`, unless
// the condition holds.

/// The index is int64 or int32.
void check_index(std::string_view op, const Tensor& index);
/// The index is int64 or int32, or has no elements: as in ATen, its dtype does not matter then.
void check_places(std::string_view op, const Tensor& index);
/// Both dtypes are the same.
void check_same_dtype(std::string_view op, const Tensor& self, const Tensor& source);
/// The index is not larger than `tensor` in any dimension other than `except` (-1: in any at all).
void check_covers(std::string_view op, std::string_view what, const Tensor& tensor,
                  const Tensor& index, int64_t except);

}  // namespace lockstep::rules
