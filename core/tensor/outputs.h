#pragma once

#include <optional>

#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// One result as computed by a shape rule.
struct OutputSpec {
  Dims sizes;
  DType dtype = DType::kF32;
  std::optional<Dims> strides;  ///< row-major when absent
  bool exact_dtype = false;  ///< a destination must have this dtype: another may not hold indices
  bool present = true;       ///< false: the result is an undefined tensor (by an `output_mask`)

  OutputSpec() noexcept {}  // not defaulted, because value-initialization would zero `sizes` first
};

/// Return value of a shape rule: the results, and the dtype in which the kernel computes.
struct Outputs {
  SmallVector<OutputSpec, 3> specs;
  /// Tensor arguments of another dtype are cast to this before the kernel sees them, and results
  /// are cast from it to their own dtype. Absent: the kernel takes the arguments as they are.
  std::optional<DType> compute;
  /// Tensor arguments that `compute` casts: bit i is the i-th of type Tensor or Tensor?.
  uint64_t cast_mask = ~uint64_t{0};
  /// Bytes that the kernel allocates for itself while it runs, where they are worth planning for:
  /// backends that know shapes only count them.
  size_t workspace_bytes = 0;
};

/// One result, row-major.
inline Outputs one(IntList sizes, DType dtype) {
  Outputs outputs;
  OutputSpec& spec = outputs.specs.emplace_back();
  spec.sizes.assign(sizes);
  spec.dtype = dtype;
  return outputs;
}

/// One result of indices or counts, row-major.
inline Outputs one_of_indices(IntList sizes, DType dtype = DType::kI64) {
  Outputs outputs = one(sizes, dtype);
  outputs.specs[0].exact_dtype = true;
  return outputs;
}

/// The place of a view in its base's storage.
struct ViewSpec {
  Dims sizes;
  Dims strides;
  int64_t offset = 0;          ///< in elements of the result's dtype, from the storage's start
  std::optional<DType> dtype;  ///< the base's when absent

  ViewSpec() noexcept {}  // not defaulted, as for OutputSpec
  ViewSpec(Dims sizes, Dims strides, int64_t offset, std::optional<DType> dtype = std::nullopt)
      : sizes(std::move(sizes)), strides(std::move(strides)), offset(offset), dtype(dtype) {}
};

}  // namespace lockstep
