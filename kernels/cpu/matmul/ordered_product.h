#pragma once

#include <cstdint>

#include "kernels/cpu/matmul/packed_product.h"

namespace lockstep::cpu {

// Products of f32 matrices that fix the order of each element's sum, so that a row has the same
// bits beside any number of other rows: a token's logits are the same in a micro-batch, in an
// evaluation and in generation, where it stands alone.

/// A product whose first factor is not transposed: its rows are samples.
using OrderedProduct = PackedProduct<float>;

/// Most terms of a piece of a sum: those that oneDNN's kernels for AVX-512 add in one go.
inline constexpr int64_t kMostTerms = 384;

/// Terms of each piece of a sum of k > 0, but the last: the pieces are as few and as equal as
/// multiples of 16 can be.
int64_t terms_of_piece(int64_t k);

/// Computes it on the calling thread; k > 0. The sum of a piece of k starts at 0 and adds its terms
/// in order, each with one rounding (fma); the pieces' sums are added in order, behind the addend.
///
/// Few rows are computed by loops, more by the library, where its sums have these bits, or by
/// multiply_packed.
void multiply_in_order(const OrderedProduct& product);

/// Whether the product, of any factors, is to be computed so. Of few rows it is only with AVX-512,
/// or where it is asked for (core/device/exact_rows.h): the loops for AVX2 are slower than the
/// library.
bool rows_are_exact(const OrderedProduct& product);

/// Computes it by our loops.
void multiply_in_order_by_loops(const OrderedProduct& product);

}  // namespace lockstep::cpu
