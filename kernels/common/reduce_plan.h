#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/shape.h"

namespace lockstep {

/// One dimension of a walk through memory; the stride is in elements.
struct Axis {
  int64_t size;
  int64_t stride;
};
using Axes = SmallVector<Axis, 5>;

/// How a reduction walks its input. Dimensions that one stride can walk are merged.
struct ReducePlan {
  Axes kept;            ///< in the order of the row-major result
  Axes reduced;         ///< largest stride first; never empty
  int64_t outputs = 1;  ///< results
  int64_t count = 1;    ///< elements reduced to one result
};

/// Plans the reduction over the dimensions whose bits are set in `mask`.
ReducePlan plan_reduction(const In& self, uint64_t mask);

/// Offset of the index-th position of a row-major walk over `axes`.
inline int64_t offset_at(int64_t index, const Axes& axes) {
  int64_t offset = 0;
  for (size_t i = axes.size(); i-- > 0 && index != 0;) {
    offset += index % axes[i].size * axes[i].stride;
    index /= axes[i].size;
  }
  return offset;
}

/// Maps the i-th result in row-major order to its offset in `out`.
class ResultPlaces {
 public:
  explicit ResultPlaces(const Out& out) : contiguous_(out.contiguous) {
    for (int i = 0; !contiguous_ && i < out.rank; ++i)
      axes_.push_back({out.size(i), out.stride(i)});
  }
  int64_t operator[](int64_t i) const { return contiguous_ ? i : offset_at(i, axes_); }

 private:
  bool contiguous_;
  Axes axes_;
};

}  // namespace lockstep
