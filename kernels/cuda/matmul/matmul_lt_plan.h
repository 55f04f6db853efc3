#pragma once

#include <memory>

#include "core/cuda/cublas_lt.h"
#include "kernels/cuda/matmul/matmul_lt.h"

namespace lockstep::cuda {

/// A problem on one device, and what the library said to it. Never changed once it is made, and
/// its descriptors stay where they are.
struct LtPlan {
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{};
  cublasLtMatrixLayoutOpaque_t b{};
  cublasLtMatrixLayoutOpaque_t c{};
  cublasLtMatrixLayoutOpaque_t d{};
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;
  bool found = false;
};

/// Made at the first call for a problem on a device, and kept. `bias` and `aux` are where the
/// problem has them; of their addresses only the alignment counts. Thread-safe. Throws DeviceError.
std::shared_ptr<const LtPlan> lt_plan(CublasLtLibrary& library, int device,
                                      const LtProblem& problem, const void* bias, const void* aux);

/// Writes a problem's operation with other addresses. Throws DeviceError.
void describe_operation(CublasLtLibrary& library, const LtProblem& problem, const void* bias,
                        const void* aux, cublasLtMatmulDescOpaque_t& operation);

}  // namespace lockstep::cuda
