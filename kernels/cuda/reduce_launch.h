#pragma once

#include <string>

#include "kernels/reduce_plan.h"

namespace lockstep::cuda {

/// The kernels of one fold over one kind of elements: what LS_REDUCTION (reduction.cuh) makes.
struct ReductionKernels {
  const void* image;
  std::string name;
  size_t state_bytes;  ///< of the fold's state
  int64_t pack = 1;    ///< columns that a thread of _columns_packed takes, where there is one
};

/// What the fold takes besides elements: Reduction (reduction.h) has these, too.
struct FoldOptions {
  double number = -1;
  int32_t variant = 0;
};

/// Makes out, and `second` where it is not null, of self's elements.
void reduce(const ReductionKernels& kernels, const In& self, const ReducePlan& plan, const Out& out,
            const Out* second = nullptr, const FoldOptions& options = {});

/// "f32", "bf16", ... or "int": what entries over elements of one dtype end in.
std::string reduce_suffix(DType dtype);

}  // namespace lockstep::cuda
