#pragma once

#include "core/cuda/fault.h"
#include "core/tensor/dtype.h"
#include "kernels/cuda/cutter.h"

namespace lockstep::cuda {

/// Places of values in lines of n numbers.
struct Search {
  const void* sequence;
  const int64_t* sorter;  ///< the order to read a line in; null for its own
  const void* values;
  void* out;  ///< i32 or i64
  bool out_int32;
  DType dtype;
  int64_t numel, n;
  Cutter line;  ///< cuts values into those of each line
  bool right;
  Fault* fault;
};

}  // namespace lockstep::cuda
