#include "kernels/cpu/matmul/loop_products.h"

#include "kernels/cpu/matmul/gemm_loop.h"

namespace lockstep::cpu::loops {

void sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
           const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
           int64_t ldc) {
  const GemmLoop<float> product(m, n, k, a, {.ld = lda, .transposed = transpose_a}, b,
                                {.ld = ldb, .transposed = transpose_b});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const float sum = alpha * product.sums()[i * product.ld() + j];
      float& result = c[i * ldc + j];
      result = beta == 0 ? sum : sum + beta * result;
    }
  }
}

void gemm_bf16(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
               const BFloat16* a, int64_t lda, const BFloat16* b, int64_t ldb,
               const onednn::Bf16Result& result) {
  const GemmLoop<BFloat16> product(m, n, k, a, {.ld = lda, .transposed = transpose_a}, b,
                                   {.ld = ldb, .transposed = transpose_b});
  with_floating_type(result.dtype, [&]<class T>() {
    T* c = static_cast<T*>(result.data);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const float sum = product.sums()[i * product.ld() + j];
        const float bias = result.bias != nullptr ? convert<float>(result.bias[j]) : 0.0F;
        c[i * result.ld + j] = convert<T>(sum + bias);
      }
    }
  });
}

}  // namespace lockstep::cpu::loops
