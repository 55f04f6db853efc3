#pragma once

#include <cstdint>

namespace lockstep::cpu {

/// A product in f32 of row-major matrices of T, which is f32, bf16 or f16: c [m, n] = addend +
/// op(a) op(b), or op(a) op(b), where op(a) [m, k] and op(b) [k, n] are the factors or their
/// transposes.
template <class T>
struct PackedProduct {
  bool transpose_a;
  bool transpose_b;
  int64_t m;
  int64_t n;
  int64_t k;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  const float* addend;  ///< [m, n], may be c; null: none
  int64_t addend_ld;    ///< between its rows; 0: one row for all
  float* c;
  int64_t ldc;
};

/// Computes it on the calling thread; k > 0. Elements are widened where they are packed for the
/// processor's vectors, so that no factor of 16 bits is stored in f32 as a whole. Sums have the
/// order that ordered_product.h fixes: each row has the same bits beside any others, and on every
/// processor.
template <class T>
void multiply_packed(const PackedProduct<T>& product);

}  // namespace lockstep::cpu
