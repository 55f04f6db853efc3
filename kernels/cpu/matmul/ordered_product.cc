#include "kernels/cpu/matmul/ordered_product.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "core/base/philox.h"
#include "core/device/exact_rows.h"
#include "kernels/cpu/matmul/onednn.h"
#include "kernels/cpu/wide_vectors.h"

namespace lockstep::cpu {

namespace {

/// Fewer rows are computed faster by loops; the library's own kernels for them have other orders.
constexpr int64_t kFewRows = 16;

bool has_few_rows(const OrderedProduct& p) { return p.m < kFewRows || p.n == 1; }

/// Computes a product as multiply_in_order says by calls of the library, one for each piece. Of a
/// transposed factor it would be slower than multiply_packed.
void multiply_by_library(const OrderedProduct& p) {
  const bool add = p.addend != nullptr;
  if (add && p.addend != p.c) {
    for (int64_t i = 0; i < p.m; ++i) {
      std::copy_n(p.addend + i * p.addend_ld, p.n, p.c + i * p.ldc);
    }
  }
  const int64_t piece = terms_of_piece(p.k);
  for (int64_t start = 0; start < p.k; start += piece) {
    onednn::sgemm(false, false, p.m, p.n, std::min(piece, p.k - start), 1, p.a + start, p.lda,
                  p.b + start * p.ldb, p.ldb, add || start > 0 ? 1.0F : 0.0F, p.c, p.ldc);
  }
}

/// Whether both ways give the same bits for a product of these sizes.
bool both_agree(int64_t m, int64_t n, int64_t k, bool add) {
  const auto numbers = [](int64_t count, uint32_t stream) {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto random = philox({static_cast<uint32_t>(i), stream, 0, 0}, {0, 0});
      values[i] = static_cast<float>(random[0] * 0x1p-31 - 1);
    }
    return values;
  };
  const std::vector<float> a = numbers(m * k, 0), b = numbers(k * n, 1);
  std::vector<float> by_library = numbers(m * n, 2), by_loops = by_library;
  const auto product = [&](std::vector<float>& c) {
    return OrderedProduct{
        false, false, m, n, k, a.data(), k, b.data(), n, add ? c.data() : nullptr, n, c.data(), n};
  };
  multiply_by_library(product(by_library));
  multiply_in_order_by_loops(product(by_loops));
  return std::ranges::equal(by_library, by_loops, {}, std::bit_cast<uint32_t, float>,
                            std::bit_cast<uint32_t, float>);
}

/// Whether the library's sums of more than a few terms, rows and columns have the bits of our
/// loops, found by products that are computed both ways at the first call. oneDNN's kernels for
/// AVX-512 have them; its kernels for AVX2 have other bits in rows at the end of a matrix.
template <bool kAdd>
bool library_adds_in_order() {
  // Sizes whose last rows and columns fill no register block of common kernels.
  static const bool kFound = both_agree(kFewRows, 2, kMostTerms, kAdd) &&
                             both_agree(33, 49, kMostTerms, kAdd) && both_agree(63, 127, 133, kAdd);
  return kFound;
}

/// Whether the library may compute the product: every piece behind the first is added to c.
bool is_of_library(const OrderedProduct& p) {
  if (p.transpose_b) return false;
  if (p.k > kMostTerms && !library_adds_in_order<true>()) return false;
  return p.addend != nullptr ? library_adds_in_order<true>() : library_adds_in_order<false>();
}

}  // namespace

bool rows_are_exact(const OrderedProduct& p) {
  return !p.transpose_a && p.k > 0 &&
         (!has_few_rows(p) || has_wide_vectors() || wants_exact_rows());
}

int64_t terms_of_piece(int64_t k) {
  const int64_t pieces = (k + kMostTerms - 1) / kMostTerms;
  return ((k + pieces - 1) / pieces + 15) / 16 * 16;
}

void multiply_in_order(const OrderedProduct& p) {
  if (has_few_rows(p)) return multiply_in_order_by_loops(p);
  if (is_of_library(p)) return multiply_by_library(p);
  multiply_packed(p);
}

}  // namespace lockstep::cpu
