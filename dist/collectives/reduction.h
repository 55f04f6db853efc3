#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/tensor/dtype.h"

namespace lockstep::dist {

enum class ReduceOp : uint8_t { kSum, kProduct, kMin, kMax, kPremultipliedSum };

/// How the ranks' values of an element are combined.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  /// kPremultipliedSum only: factor of every value before it is added.
  double factor = 1;
  /// kSum only: number of leaves of the tree (dist/collectives/leaf_tree.h) in whose order values
  /// are added; 0: in that of ranks and hosts (dist/collectives/sum_order.h).
  int32_t leaves = 0;

  friend bool operator==(const Reduction&, const Reduction&) = default;
};

/// The sum over `ranks` ranks, or with `average` their mean.
inline Reduction sum_of_ranks(int ranks, bool average) {
  if (!average) return {};
  return {.op = ReduceOp::kPremultipliedSum, .factor = 1.0 / ranks};
}

/// Returns for example "sum", "sum of 8 leaves" or "premultiplied sum by 0.25".
std::string to_string(const Reduction& reduction);

/// Throws DTypeError, naming `op`, for undefined reductions: other than min and max of booleans,
/// and premultiplied sums of integers.
void check_reduction(const char* op, DType dtype, const Reduction& reduction);

/// Sets element i of `out` to `((sources[0][i] + sources[1][i]) + sources[2][i]) ...`, with
/// `reduction` for +: always in this order, so that the result is bitwise reproducible. Values of
/// 16 bits are reduced in f32 and rounded once, at the end; integers wrap; min and max propagate
/// NaN. `out` may be one of the sources; else memory must not overlap. Requires at least one
/// source.
void reduce(DType dtype, const Reduction& reduction, std::span<const void* const> sources,
            void* out, int64_t count);

}  // namespace lockstep::dist
