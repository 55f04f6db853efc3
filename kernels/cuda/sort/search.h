#pragma once

#include "core/cuda/fault.h"
#include "core/tensor/dtype.h"
#include "kernels/cuda/index_splitter.h"

namespace lockstep::cuda {

/// Arguments of searchsorted: insertion positions of values in sorted lines of n numbers.
struct Search {
  const void* sequence;
  const int64_t* sorter;  ///< order in which to read each line; null if the lines are sorted
  const void* values;
  void* out;  ///< i32 or i64
  bool out_int32;
  DType dtype;
  int64_t numel, n;
  IndexSplitter line;  ///< splits values into lines
  bool right;
  Fault* fault;
};

}  // namespace lockstep::cuda
