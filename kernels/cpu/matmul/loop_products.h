#pragma once

#include "kernels/cpu/matmul/onednn.h"

/// What onednn.h declares, by our own loops: for builds without oneDNN, and for threads that
/// compute on while the process ends. They sum in another order, so their bits differ from
/// oneDNN's.
namespace lockstep::cpu::loops {

void sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
           const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
           int64_t ldc);

void gemm_bf16(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
               const BFloat16* a, int64_t lda, const BFloat16* b, int64_t ldb,
               const onednn::Bf16Result& result);

}  // namespace lockstep::cpu::loops
