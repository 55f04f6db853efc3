#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/scalar.h"
#include "kernels/cuda/index/grouping.h"
#include "kernels/cuda/index/scatter.h"

namespace lockstep::cuda {

/// Layout of the values and their destination, in elements. A position's part of `values` and the
/// place it is written to have the same columns.
struct GroupedColumns {
  int64_t place_stride = 1;
  Dims sizes;  ///< sizes of the box of columns
  Dims out_strides;
  Dims value_strides;
  Dims position_sizes;  ///< sizes of the box of positions
  Dims position_strides;
};

/// out += factor * values at the grouped places, in the order of the positions.
void add_grouped(const Out& out, const In& values, const Grouping& groups,
                 const GroupedColumns& columns, const Scalar& factor = 1);
/// out = values at the grouped places; the last position of a place wins.
void keep_last_grouped(const Out& out, const In& values, const Grouping& groups,
                       const GroupedColumns& columns);

}  // namespace lockstep::cuda
