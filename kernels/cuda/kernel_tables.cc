#include "kernels/cuda/kernel_tables.h"

#include <bit>

#include "core/base/error.h"
#include "kernels/common/lanes.h"

namespace lockstep::cuda {

namespace {
std::string name_of(std::string_view stem, std::string_view suffix, std::string_view end = "") {
  return std::string(stem).append("_").append(suffix).append(end);
}

template <class Choose>
DTypeKernels by_dtype(const Choose& choose) {
  DTypeKernels kernels;
  for (int i = 0; i < kDTypeCount; ++i) {
    kernels[static_cast<DType>(i)] = choose(static_cast<DType>(i));
  }
  return kernels;
}

}  // namespace

std::string_view dtype_suffix(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kU8:
      return "u8";
    case DType::kI8:
      return "i8";
    case DType::kI16:
      return "i16";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
  }
  throw InternalError("[internal] unknown dtype.");
}

DTypeKernels::DTypeKernels(const void* image, std::string_view stem,
                           std::initializer_list<DType> dtypes, std::string_view end) {
  for (const DType dtype : dtypes) {
    (*this)[dtype] = Kernel(image, name_of(stem, dtype_suffix(dtype), end));
  }
}

DTypeKernels kernels_of_numbers(const void* image, std::string_view stem) {
  const DTypeKernels floating(image, stem);
  const Kernel integers(image, name_of(stem, "integers"));
  return by_dtype([&](DType dtype) { return is_floating(dtype) ? floating[dtype] : integers; });
}

DTypeKernels kernels_of_lanes(const void* image, std::string_view stem) {
  const DTypeKernels lanes(image, stem, {DType::kF32, DType::kF64, DType::kI64});
  return by_dtype([&](DType dtype) {
    const ComputeLane lane = natural_lane(dtype);
    return lanes[lane == ComputeLane::kF32   ? DType::kF32
                 : lane == ComputeLane::kF64 ? DType::kF64
                                             : DType::kI64];
  });
}

UnitKernels::UnitKernels(const void* image, std::string_view stem, size_t largest) {
  for (size_t bytes = 1; bytes <= largest; bytes *= 2) {
    kernels_[static_cast<size_t>(std::countr_zero(bytes))] =
        Kernel(image, name_of(stem, "b" + std::to_string(bytes)));
  }
}

Kernel UnitKernels::operator[](size_t bytes) const {
  return kernels_[static_cast<size_t>(std::countr_zero(bytes))];
}

}  // namespace lockstep::cuda
