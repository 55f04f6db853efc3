#pragma once

#include <cstdint>
#include <optional>

#include "kernels/common/gemm_product.h"

namespace lockstep::cuda {

/// A matrix as cuBLASLt sees it: column-major, so what is row-major here is its transpose there.
struct LtMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t ld = 0;
  int64_t batch_stride = 0;  ///< in elements
  int64_t alignment = 0;     ///< in bytes, of the first element; at most 16

  bool operator==(const LtMatrix&) const = default;
};

/// What cuBLASLt makes of a product on its way to memory.
enum class LtActivation : uint8_t {
  kNone,
  kGelu,          ///< the gelu (tanh form); `aux` gets what it is taken of
  kGeluBackward,  ///< the product times the gelu's slope at `aux`
};

/// What else is done with a product, which then has a batch of one and an addend that is a bias, if
/// any. Matrices lie like the product's result.
struct LtEpilogue {
  LtActivation activation = LtActivation::kNone;
  void* aux = nullptr;             ///< of the result's dtype
  const void* residual = nullptr;  ///< added to the product
  /// Of result, residual and bias; that of the factors when absent.
  std::optional<DType> result_dtype = std::nullopt;

  bool is_plain() const { return activation == LtActivation::kNone && residual == nullptr; }
};

/// Everything that cuBLASLt chooses an algorithm by: d = alpha op(a) op(b) + beta c + bias, and an
/// activation of that. Equal
/// ones get the same algorithm for as long as the process lives, so equal calls give equal bits.
struct LtProblem {
  DType dtype = DType::kF32;         ///< of a and b
  DType result_dtype = DType::kF32;  ///< of c, d, bias and what an activation is taken of
  LtActivation activation = LtActivation::kNone;
  bool tf32 = false;  ///< whether f32 factors may be rounded to 10 bits of mantissa
  bool transpose_a = false;
  bool transpose_b = false;
  bool adds_c = false;  ///< else beta is 0
  bool bias = false;    ///< a vector of d's rows, added to each column
  int64_t batch = 1;
  int64_t bias_stride = 0;
  int64_t bias_alignment = 0;
  int64_t aux_alignment = 0;
  LtMatrix a;
  LtMatrix b;
  LtMatrix c;
  LtMatrix d;

  bool has_epilogue() const { return bias || activation != LtActivation::kNone; }
  bool operator==(const LtProblem&) const = default;
};

/// How a product's addend gets into cuBLASLt's product.
enum class AddendWay : uint8_t {
  kNone,    ///< there is none
  kBias,    ///< a row for all rows, added at the end
  kMatrix,  ///< a matrix beside the result, or the result itself
  kSpread,  ///< written into the result first, which is then the matrix: any strides
};

/// The ways that a product's addend can go, the best first: what the library has no algorithm for
/// one way it is asked for another way.
struct AddendWays {
  AddendWay first = AddendWay::kNone;
  AddendWay second = AddendWay::kNone;  ///< kNone: there is no other
};
AddendWays addend_ways(const Product& product);

/// The problem that a product is, or nothing where cuBLASLt has none of the kind: integers, nothing
/// to sum up (k = 0), sizes that an int32 does not hold, an epilogue in double, an activation of
/// rows that are no multiple of 8.
std::optional<LtProblem> lt_problem(const Product& product, AddendWay way, bool tf32,
                                    const LtEpilogue& epilogue = {});

/// Queues a product on the stream of the running kernel. False, with nothing queued, where it has
/// to be computed another way: there is no cuBLASLt, or it knows no algorithm. Either is said once
/// on standard error with LOCKSTEP_WARN_COPIES=1. Throws DeviceError.
bool multiply_by_cublas_lt(const Product& product, const LtEpilogue& epilogue = {});

}  // namespace lockstep::cuda
