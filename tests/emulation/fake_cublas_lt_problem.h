#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "core/cuda/cublas_lt.h"

/// Products as described by descriptors of the fake cuBLASLt, and their validation.
namespace lockstep::cuda::fake_lt {

inline constexpr uint32_t kOperation = 0x0b5e7a01;
inline constexpr uint32_t kLayout = 0x0b5e7a02;
inline constexpr uint32_t kPreference = 0x0b5e7a03;
inline constexpr uint32_t kAlgorithm = 0x0b5e7a04;

// Contents of the library's opaque structs, in a layout of our own.
struct Operation {
  uint32_t kind = kOperation;
  int32_t compute = 0;
  int32_t scale = 0;
  int32_t transpose_a = CUBLAS_OP_N;
  int32_t transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  int32_t bias_type = -1;
  const void* bias = nullptr;
  int64_t bias_stride = 0;
  void* aux = nullptr;
  int64_t aux_ld = 0;
  int32_t processors = 0;
};
struct Layout {
  uint32_t kind = kLayout;
  int32_t type = 0;
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t ld = 0;
  int64_t stride = 0;
  int32_t batch = 1;
};
struct Preference {
  uint32_t kind = kPreference;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint64_t workspace = 0;
  std::array<uint32_t, 4> alignments = {256, 256, 256, 256};
};
struct Algorithm {
  uint32_t kind = kAlgorithm;
  uint32_t bias_alignment = 0;
  uint32_t aux_alignment = 0;
  uint64_t problem = 0;
  uint64_t workspace = 0;
  std::array<uint32_t, 4> alignments = {};
};
static_assert(sizeof(Operation) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <class T>
T read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

inline size_t bytes_of(int32_t type) {
  switch (type) {
    case CUDA_R_64F:
      return 8;
    case CUDA_R_32F:
      return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    default:
      return 0;
  }
}

inline bool is_half(int32_t type) { return type == CUDA_R_16F || type == CUDA_R_16BF; }

/// The description of one cublasLtMatmul call, without its addresses.
struct Problem {
  Operation operation;
  Layout a;
  Layout b;
  Layout c;
  Layout d;

  bool has_bias() const { return (operation.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  bool has_gelu() const { return (operation.epilogue & CUBLASLT_EPILOGUE_GELU) != 0; }
  bool has_gelu_backward() const { return operation.epilogue == CUBLASLT_EPILOGUE_DGELU; }
  bool has_aux() const { return has_gelu() || has_gelu_backward(); }

  /// Why the epilogue is invalid, or "".
  std::string epilogue_fault() const {
    switch (operation.epilogue) {
      case CUBLASLT_EPILOGUE_DEFAULT:
        return "";
      case CUBLASLT_EPILOGUE_BIAS:
      case CUBLASLT_EPILOGUE_GELU_AUX:
      case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      case CUBLASLT_EPILOGUE_DGELU:
        break;
      default:
        return "unknown epilogue";
    }
    if (operation.compute == CUBLAS_COMPUTE_64F) return "no epilogue in double";
    if (has_bias() && operation.bias == nullptr) return "no bias";
    if (has_bias() && operation.bias_type != d.type) return "bias has another type than d";
    if (!has_aux()) return "";
    if (operation.aux == nullptr) return "no auxiliary matrix";
    if (operation.aux_ld % 8 != 0) return "the auxiliary matrix' ld is no multiple of 8";
    if (operation.aux_ld < static_cast<int64_t>(d.rows)) return "the auxiliary matrix: ld < rows";
    if (d.batch != 1) return "an auxiliary matrix for a batch";
    return "";
  }

  uint64_t hash() const {
    uint64_t sum = 1469598103934665603u;
    const auto add = [&](auto value) {
      sum = (sum ^ static_cast<uint64_t>(value)) * 1099511628211u;
    };
    add(operation.compute), add(operation.transpose_a), add(operation.transpose_b);
    add(operation.epilogue), add(operation.bias_stride), add(operation.aux_ld);
    for (const Layout* layout : {&a, &b, &c, &d}) {
      add(layout->type), add(layout->rows), add(layout->columns);
      add(layout->ld), add(layout->stride), add(layout->batch);
    }
    return sum;
  }

  /// Why the library would refuse the product, or "".
  std::string fault() const {
    for (const auto& [name, layout] : {std::pair("a", a), {"b", b}, {"c", c}, {"d", d}}) {
      const std::string matrix(name);
      if (layout.kind != kLayout) return matrix + " has no layout";
      if (layout.type != (matrix < "c" ? a.type : d.type)) {
        return matrix + " has another type than its fellow";
      }
      if (layout.rows == 0 || layout.columns == 0) return matrix + " is empty";
      if (layout.rows > INT32_MAX || layout.columns > INT32_MAX) return matrix + " is too large";
      if (layout.ld < static_cast<int64_t>(layout.rows)) return matrix + ": ld < rows";
      if (layout.batch < 1 || layout.batch != d.batch) return matrix + ": another batch count";
      if (layout.stride < 0) return matrix + ": a negative batch stride";
    }
    if (d.batch > 1 &&
        d.stride < d.ld * static_cast<int64_t>(d.columns - 1) + static_cast<int64_t>(d.rows)) {
      return "the matrices of d overlap";
    }
    if (operation.kind != kOperation) return "no operation";
    const bool wide = operation.compute == CUBLAS_COMPUTE_64F;
    if (a.type != d.type && !(is_half(a.type) && d.type == CUDA_R_32F)) {
      return "factors of this type have no result of that";
    }
    if (bytes_of(d.type) == 0 || wide != (d.type == CUDA_R_64F) ||
        operation.scale != (wide ? CUDA_R_64F : CUDA_R_32F) ||
        (!wide && operation.compute != CUBLAS_COMPUTE_32F &&
         !(operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && d.type == CUDA_R_32F))) {
      return "compute type and types do not go together";
    }
    const bool ta = operation.transpose_a == CUBLAS_OP_T;
    const bool tb = operation.transpose_b == CUBLAS_OP_T;
    if ((ta ? a.columns : a.rows) != d.rows) return "a and d: other rows";
    if ((tb ? b.rows : b.columns) != d.columns) return "b and d: other columns";
    if ((ta ? a.rows : a.columns) != (tb ? b.columns : b.rows)) return "a and b: other inner sizes";
    if (c.rows != d.rows || c.columns != d.columns) return "c and d: other sizes";
    return epilogue_fault();
  }
};

inline Problem problem_of(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                          cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                          cublasLtMatrixLayout_t d) {
  return {read<Operation>(operation), read<Layout>(a), read<Layout>(b), read<Layout>(c),
          read<Layout>(d)};
}

}  // namespace lockstep::cuda::fake_lt
