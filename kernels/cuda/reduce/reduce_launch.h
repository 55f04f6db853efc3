#pragma once

#include <array>
#include <string>

#include "core/cuda/kernel.h"
#include "kernels/common/reduce_plan.h"
#include "kernels/cuda/reduce/reduction.h"

namespace lockstep::cuda {

/// The kernels of one fold for one element type, as LS_REDUCTION (reduction.cuh) defines them.
struct ReductionKernels {
  std::array<Kernel, kReduceStrategies> strategies;
  Kernel packed_columns;
  Kernel parts;
  size_t state_bytes = 0;  ///< size of the fold's state
  int64_t pack = 1;        ///< columns per thread of packed_columns; 1 if there is none
  /// The fold and the source of its elements as row_steps.cuh names them:
  /// "SimpleFold<lockstep::SumOf<float>>, float"; empty if it does not know the fold.
  std::string fold;

  ReductionKernels() = default;
  ReductionKernels(const void* image, const std::string& name, size_t state_bytes, int64_t pack = 1,
                   std::string fold = {});
};

/// Further arguments of a fold, passed on in Reduction (reduction.h).
struct FoldOptions {
  double number = -1;
  int32_t variant = 0;
};

/// Reduces self to out and, if it is not null, `second`.
void reduce(const ReductionKernels& kernels, const In& self, const ReducePlan& plan, const Out& out,
            const Out* second = nullptr, const FoldOptions& options = {});

/// A fold's kernels for each element type: "name_f32", "name_bf16", ..., "name_int".
class ReductionFamily {
 public:
  /// For SimpleFold of the struct `join` of kernels/common/joins.h: f32 is joined for f16 and bf16,
  /// and 8 bytes for integers. With `packs`, floating dtypes other than f64 have packed column
  /// kernels.
  ReductionFamily(const void* image, const std::string& name, const std::string& join,
                  bool packs = false);

  const ReductionKernels& operator[](DType dtype) const {
    return kernels_[static_cast<size_t>(dtype)];
  }

 private:
  std::array<ReductionKernels, static_cast<size_t>(kDTypeCount)> kernels_;
};

}  // namespace lockstep::cuda
