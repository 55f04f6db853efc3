#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/tensor/dtype.h"

namespace lockstep::dist {

enum class ReduceOp : uint8_t { kSum, kProduct, kMin, kMax, kPremultipliedSum };

/// How the ranks' values of one element become one.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  /// What every value is multiplied by before it enters the sum; of kPremultipliedSum alone.
  double factor = 1;
  /// Of kSum: the number of leaves of the tree (dist/collectives/leaf_tree.h) in whose order values
  /// are added; 0: in the order of ranks.
  int32_t leaves = 0;

  friend bool operator==(const Reduction&, const Reduction&) = default;
};

/// "sum", "sum of 8 leaves", "premultiplied sum by 0.25".
std::string to_string(const Reduction& reduction);

/// Throws DTypeError, naming `op`, for reductions that have no meaning: anything but min and max of
/// booleans, premultiplied sums of integers.
void check_reduction(const char* op, DType dtype, const Reduction& reduction);

/// Element i of `out` becomes `((sources[0][i] + sources[1][i]) + sources[2][i]) ...`, with
/// `reduction` for +: always in this order, so that the bits depend on nothing else. Values of 16
/// bits are reduced in f32 and rounded once, at the end; integers wrap; a NaN among the values of
/// min and max is the result. `out` may be one of the sources; else memory must not overlap. At
/// least one source.
void reduce(DType dtype, const Reduction& reduction, std::span<const void* const> sources,
            void* out, int64_t count);

/// The sum of the sources in the order of a tree: each is put on a stack in turn, and the two on
/// top are then added `joins[i]` times, the lower one on the left; one is left. At most 64 stand
/// there at once. `out` may be one of the sources; else memory must not overlap.
void sum_tree(DType dtype, std::span<const void* const> sources, std::span<const uint8_t> joins,
              void* out, int64_t count);

}  // namespace lockstep::dist
