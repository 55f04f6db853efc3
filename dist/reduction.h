#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/dtype.h"

namespace lockstep::dist {

enum class ReduceOp : uint8_t { kSum, kProduct, kMin, kMax, kPremultipliedSum };

/// How the ranks' values of one element become one.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  /// What every value is multiplied by before it enters the sum; of kPremultipliedSum alone.
  double factor = 1;

  friend bool operator==(const Reduction&, const Reduction&) = default;
};

/// "sum", "premultiplied sum by 0.25".
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

}  // namespace lockstep::dist
