#pragma once

#include <cstdint>
#include <optional>

#include "kernels/common/gemm_product.h"

namespace lockstep::cuda {

/// A matrix in cuBLASLt's column-major terms, that is, the transpose of a row-major matrix.
struct LtMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t ld = 0;
  int64_t batch_stride = 0;  ///< in elements
  int64_t alignment = 0;     ///< in bytes, of the first element; at most 16

  bool operator==(const LtMatrix&) const = default;
};

/// Activation that cuBLASLt applies to a product before storing it.
enum class LtActivation : uint8_t {
  kNone,
  kGelu,          ///< gelu (tanh form); its argument is written to `aux`
  kGeluBackward,  ///< the product times the derivative of gelu at `aux`
};

/// Further operations on a product, which must then have a batch of one, and a bias as its only
/// addend. All matrices are laid out like the product's result.
struct LtEpilogue {
  LtActivation activation = LtActivation::kNone;
  void* aux = nullptr;             ///< has the result's dtype
  const void* residual = nullptr;  ///< added to the product
  /// dtype of result, residual and bias; that of the factors if not set.
  std::optional<DType> result_dtype = std::nullopt;

  bool is_plain() const { return activation == LtActivation::kNone && residual == nullptr; }
};

/// All properties by which cuBLASLt chooses an algorithm for d = activation(alpha op(a) op(b) +
/// beta c + bias). Equal problems get the same algorithm for the lifetime of the process, so equal
/// calls give equal bits.
struct LtProblem {
  DType dtype = DType::kF32;         ///< dtype of a and b
  DType result_dtype = DType::kF32;  ///< dtype of c, d, bias and the activation's argument
  LtActivation activation = LtActivation::kNone;
  bool tf32 = false;  ///< f32 factors may be rounded to a 10-bit mantissa
  bool transpose_a = false;
  bool transpose_b = false;
  bool adds_c = false;  ///< else beta is 0
  bool bias = false;    ///< a vector with one element per row of d, added to each column
  int64_t batch = 1;
  int64_t bias_stride = 0;
  int64_t bias_alignment = 0;
  int64_t aux_alignment = 0;
  int32_t processors = 0;  ///< multiprocessors that the algorithm is chosen for; 0: all
  LtMatrix a;
  LtMatrix b;
  LtMatrix c;
  LtMatrix d;

  bool has_epilogue() const { return bias || activation != LtActivation::kNone; }
  bool operator==(const LtProblem&) const = default;
};

/// How a product's addend is passed to cuBLASLt.
enum class AddendStrategy : uint8_t {
  kNone,    ///< no addend
  kBias,    ///< a bias, equal for all rows, added in the epilogue
  kMatrix,  ///< a matrix c, possibly the result itself
  kSpread,  ///< copied into the result first, which is then c; supports any strides
};

/// The strategies for passing a product's addend, best first: the second is tried if the library
/// has no algorithm for the first.
struct AddendStrategies {
  AddendStrategy first = AddendStrategy::kNone;
  AddendStrategy second = AddendStrategy::kNone;  ///< kNone: there is no other
};
AddendStrategies addend_strategies(const Product& product);

/// Returns the problem of a product, or nullopt if cuBLASLt does not support it: integers, k = 0,
/// sizes beyond int32, an epilogue in f64, an activation of rows that are not a multiple of 8.
std::optional<LtProblem> lt_problem(const Product& product, AddendStrategy strategy, bool tf32,
                                    const LtEpilogue& epilogue = {});

/// Queues a product on the stream of the running kernel. Returns false, with nothing queued, if
/// cuBLASLt is missing or has no algorithm, which is counted (core/device/slow_paths.h). Throws
/// DeviceError.
bool multiply_by_cublas_lt(const Product& product, const LtEpilogue& epilogue = {});

}  // namespace lockstep::cuda
