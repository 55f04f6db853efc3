#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/cuda/kernel.h"
#include "core/tensor/dtype.h"

namespace lockstep::cuda {

// Tables of kernels compiled for several element types, defined as constants next to the launch.

/// The suffix of kernel names for elements of `dtype`, such as "f32".
std::string_view dtype_suffix(DType dtype);

inline constexpr std::initializer_list<DType> kFloatingDTypes = {DType::kF32, DType::kBF16,
                                                                 DType::kF16, DType::kF64};

/// One kernel per dtype, empty for dtypes without one.
class DTypeKernels {
 public:
  DTypeKernels() = default;
  /// Looks up "stem_f32", "stem_bf16", ... for each of `dtypes`; `end` is appended to each name.
  DTypeKernels(const void* image, std::string_view stem,
               std::initializer_list<DType> dtypes = kFloatingDTypes, std::string_view end = "");
  Kernel operator[](DType dtype) const { return kernels_[static_cast<size_t>(dtype)]; }
  Kernel& operator[](DType dtype) { return kernels_[static_cast<size_t>(dtype)]; }

 private:
  std::array<Kernel, static_cast<size_t>(kDTypeCount)> kernels_;
};
/// Kernels "stem_f32", ... for the floating dtypes and "stem_integers" for the others.
DTypeKernels kernels_of_numbers(const void* image, std::string_view stem);
/// Kernels by the dtype's natural lane (kernels/common/lanes.h): "stem_f32", "stem_f64",
/// "stem_i64".
DTypeKernels kernels_of_lanes(const void* image, std::string_view stem);

/// Kernels that only move elements, by element size: "stem_b1", "stem_b2", ...
class UnitKernels {
 public:
  /// For sizes of up to `largest` bytes, at most 16.
  UnitKernels(const void* image, std::string_view stem, size_t largest = 8);

  /// `bytes` must be a power of two.
  Kernel operator[](size_t bytes) const;

 private:
  std::array<Kernel, 5> kernels_;
};

}  // namespace lockstep::cuda
