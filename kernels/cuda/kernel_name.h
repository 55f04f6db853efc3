#pragma once

#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/error.h"

namespace lockstep::cuda {

/// How the name of a kernel for elements of `dtype` ends: "f32". Kernels that only move elements
/// have names by their size: `bits_suffix`, "b4".
inline std::string_view dtype_suffix(DType dtype) {
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

/// "softmax_rows" and f32 give "softmax_rows_f32".
inline std::string kernel_name(std::string_view stem, DType dtype) {
  return std::string(stem).append("_").append(dtype_suffix(dtype));
}
/// "pad" and f32 or i32 give "pad_b4".
inline std::string bits_kernel_name(std::string_view stem, DType dtype) {
  return std::string(stem).append("_b").append(std::to_string(size_of(dtype)));
}

}  // namespace lockstep::cuda
