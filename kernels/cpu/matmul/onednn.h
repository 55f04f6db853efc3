#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"

/// Matrix products by oneDNN; onednn_conv.h has the convolutions, and no other file depends on the
/// library. Every call runs on the calling thread alone: the library partitions a product by the
/// number of threads, which would change the bits.
namespace lockstep::cpu::onednn {

/// Room for what oneDNN maps at once: code of kernels, and buffers of a thread. It needs a few MiB;
/// where it gets none it ends the process, so each use is preceded by require_addresses.
inline constexpr size_t kRoom = size_t{16} << 20;

/// Whether the library multiplies bf16 by tiles (AMX), several times as fast as f32.
bool has_tiles();

/// Whether the library multiplies bf16 faster than f32: by tiles, or by a processor's products of
/// bf16 that are (kernels/cpu/arithmetic.h).
bool is_fast_in_bf16();

/// Row-major c [m, n] = alpha op(a) op(b) + beta c; op transposes. c is not read when beta is 0.
void sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
           const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
           int64_t ldc);

/// Where a product of bf16 matrices ends: row-major [m, n], f32 or bf16.
struct Bf16Result {
  void* data;
  int64_t ld;
  DType dtype;
  const BFloat16* bias = nullptr;  ///< [n], added to each row; only if the result is bf16
};

/// result = op(a) op(b) + bias of bf16 matrices, summed in f32 and rounded once. m, n, k > 0.
/// Compiled products are kept per thread, keyed by sizes, layouts and leading dimensions.
void gemm_bf16(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
               const BFloat16* a, int64_t lda, const BFloat16* b, int64_t ldb,
               const Bf16Result& result);

}  // namespace lockstep::cpu::onednn
