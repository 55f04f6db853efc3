#pragma once

#include <atomic>
#include <memory>

#include "core/cuda/cublas_lt.h"
#include "kernels/cuda/matmul/matmul_lt.h"

namespace lockstep::cuda {

/// A problem on one device with its descriptors and the chosen algorithm. Immutable but for
/// `refused`, and its descriptors never move.
struct LtPlan {
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{};
  cublasLtMatrixLayoutOpaque_t b{};
  cublasLtMatrixLayoutOpaque_t c{};
  cublasLtMatrixLayoutOpaque_t d{};
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;
  bool found = false;
  /// Whether a launch was refused. The choice of an algorithm is not told beta: a library may not
  /// support it beside an epilogue.
  mutable std::atomic<bool> refused = false;
};

/// Writes the descriptors of a problem into `plan`, and into `preference` what an algorithm may
/// cost. Needs no device. Throws DeviceError.
void describe_problem(CublasLtLibrary& library, const LtProblem& problem, const void* bias,
                      const void* aux, LtPlan& plan, cublasLtMatmulPreferenceOpaque_t& preference);

/// Returns the plan of a problem on a device; made at the first call and cached. `bias` and `aux`
/// are used if the problem has them; only the alignment of their addresses matters. Thread-safe.
/// Throws DeviceError.
std::shared_ptr<const LtPlan> lt_plan(CublasLtLibrary& library, int device,
                                      const LtProblem& problem, const void* bias, const void* aux);

/// Writes the problem's operation descriptor with other addresses. Throws DeviceError.
void describe_operation(CublasLtLibrary& library, const LtProblem& problem, const void* bias,
                        const void* aux, cublasLtMatmulDescOpaque_t& operation);

}  // namespace lockstep::cuda
