#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dist/collectives/reduction.h"

namespace lockstep::dist {

/// The dtype in which partial results of `op` lose nothing: f32 for 16 bits, unless `op` is min or
/// max; else `dtype`.
DType partial_dtype(DType dtype, ReduceOp op);
/// By how much partial results take more bytes than values: 2 or 1.
inline uint64_t partial_growth(DType dtype, ReduceOp op) {
  return size_of(partial_dtype(dtype, op)) / size_of(dtype);
}

/// The reduction of partial results: as `reduction`, whose factor they have had.
Reduction reduction_of_partials(const Reduction& reduction);

/// How sources are reduced: which dtypes, and in which order.
struct OrderedReduction {
  DType from = DType::kU8;  ///< of the sources
  /// The result's: it equals `from`, or one of the two is `partial_dtype` of the other.
  DType to = DType::kU8;
  Reduction reduction;
  /// Source i is pushed on a stack, and then the two on top are combined `joins[i]` times, the
  /// lower one on the left; one must be left at the end. The stack holds at most 64. Empty: in the
  /// order of `reduce`; `from` and `to` are equal then.
  std::vector<uint8_t> joins;
};

/// Reduces `count` elements of every source into `out`. As in `reduce`, values of 16 bits are
/// reduced in f32 and rounded once, at the end. `out` may be one of the sources if dtypes are
/// equal; else memory must not overlap. Requires at least one source.
void reduce_in_order(const OrderedReduction& how, std::span<const void* const> sources, void* out,
                     int64_t count);

}  // namespace lockstep::dist
