#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/cuda/kernel.h"
#include "core/tensor/dtype.h"

namespace lockstep::cuda {

// Kernels that are compiled for several kinds of elements, named once: constants beside the launch.

/// How the name of a kernel for elements of `dtype` ends: "f32".
std::string_view dtype_suffix(DType dtype);

inline constexpr std::initializer_list<DType> kFloatingDTypes = {DType::kF32, DType::kBF16,
                                                                 DType::kF16, DType::kF64};

/// One for each dtype; none where there is no kernel.
class DTypeKernels {
 public:
  DTypeKernels() = default;
  /// "stem_f32", "stem_bf16", ...: one for each of `dtypes`, and `end` behind each name.
  DTypeKernels(const void* image, std::string_view stem,
               std::initializer_list<DType> dtypes = kFloatingDTypes, std::string_view end = "");
  Kernel operator[](DType dtype) const { return kernels_[static_cast<size_t>(dtype)]; }
  Kernel& operator[](DType dtype) { return kernels_[static_cast<size_t>(dtype)]; }

 private:
  std::array<Kernel, static_cast<size_t>(kDTypeCount)> kernels_;
};
/// Floating dtypes have their own, the others "stem_integers".
DTypeKernels kernels_of_numbers(const void* image, std::string_view stem);
/// By the dtype's natural lane (kernels/common/lanes.h): "stem_f32", "stem_f64", "stem_i64".
DTypeKernels kernels_of_lanes(const void* image, std::string_view stem);

/// Kernels that move elements, whatever they mean, by their bytes: "stem_b1", "stem_b2", ...
class UnitKernels {
 public:
  /// For up to `largest` bytes, at most 16.
  UnitKernels(const void* image, std::string_view stem, size_t largest = 8);

  /// `bytes`: a power of two.
  Kernel operator[](size_t bytes) const;

 private:
  std::array<Kernel, 5> kernels_;
};

}  // namespace lockstep::cuda
