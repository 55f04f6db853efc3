// Compiled instead of onednn.cc and onednn_conv.cc if oneDNN is not found or disabled: our own
// loops compute instead.

#include "core/device/arithmetic_facts.h"
#include "kernels/cpu/conv/onednn_conv.h"
#include "kernels/cpu/matmul/loop_products.h"
#include "kernels/cpu/matmul/onednn.h"

namespace lockstep::cpu::onednn {

namespace {

[[maybe_unused]] const bool kRegistered =
    register_arithmetic_fact("oneDNN", [] { return std::string("not built in"); });

}  // namespace

bool has_tiles() { return false; }
bool is_fast_in_bf16() { return false; }

void sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
           const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
           int64_t ldc) {
  loops::sgemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm_bf16(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
               const BFloat16* a, int64_t lda, const BFloat16* b, int64_t ldb,
               const Bf16Result& result) {
  loops::gemm_bf16(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, result);
}

bool convolve(ConvResult, const ConvProblem&, const ConvTensors&) { return false; }

}  // namespace lockstep::cpu::onednn
