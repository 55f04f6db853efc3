#pragma once

#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep::rules {

// What the shape rules of indexing operators refuse. Each throws, naming `op`.

/// The index is int64 or int32.
void check_index(std::string_view op, const Tensor& index);
/// The same where the index has elements; as in ATen, one without any may have any dtype.
void check_places(std::string_view op, const Tensor& index);
/// Both dtypes are the same.
void check_same_dtype(std::string_view op, const Tensor& self, const Tensor& source);
/// The index is not larger than `tensor`, save along `except` (-1: along none).
void check_covers(std::string_view op, std::string_view what, const Tensor& tensor,
                  const Tensor& index, int64_t except);

}  // namespace lockstep::rules
