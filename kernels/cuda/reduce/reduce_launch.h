#pragma once

#include <array>
#include <string>

#include "core/cuda/kernel.h"
#include "kernels/common/reduce_plan.h"
#include "kernels/cuda/reduce/reduction.h"

namespace lockstep::cuda {

/// The kernels of one fold over one kind of elements: what LS_REDUCTION (reduction.cuh) makes.
struct ReductionKernels {
  std::array<Kernel, kReduceWays> ways;
  Kernel packed_columns;
  Kernel parts;
  size_t state_bytes = 0;  ///< of the fold's state
  int64_t pack = 1;        ///< columns that a thread of packed_columns takes; 1: there is none

  ReductionKernels() = default;
  ReductionKernels(const void* image, const std::string& name, size_t state_bytes,
                   int64_t pack = 1);
};

/// What the fold takes besides elements: Reduction (reduction.h) has these, too.
struct FoldOptions {
  double number = -1;
  int32_t variant = 0;
};

/// Makes out, and `second` where it is not null, of self's elements.
void reduce(const ReductionKernels& kernels, const In& self, const ReducePlan& plan, const Out& out,
            const Out* second = nullptr, const FoldOptions& options = {});

/// A fold's kernels over elements of each kind: "name_f32", "name_bf16", ..., "name_int".
class ReductionFamily {
 public:
  /// The state is a number: of the elements' type, f32 for halves, and 8 bytes for integers.
  /// `packs`: floating elements but f64 have packed columns.
  ReductionFamily(const void* image, const std::string& name, bool packs = false);

  const ReductionKernels& operator[](DType dtype) const {
    return kernels_[static_cast<size_t>(dtype)];
  }

 private:
  std::array<ReductionKernels, static_cast<size_t>(kDTypeCount)> kernels_;
};

}  // namespace lockstep::cuda
