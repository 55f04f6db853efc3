#include "kernels/cuda/reduce/moments.h"

#include <limits>

#include "core/dispatch/kernel.h"
#include "core/tensor/shape.h"
#include "kernels/cuda/reduce/moments.fatbin.h"
#include "kernels/cuda/reduce/reduce_launch.h"

namespace lockstep::cuda {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ReductionKernels kernels_of(const char* name, size_t numbers) {
  return {kImage, name, numbers * sizeof(double)};
}
const ReductionKernels kVar = kernels_of("moments_var", 3);
const ReductionKernels kLogSumExp = kernels_of("moments_logsumexp", 2);
const ReductionKernels kNormF32 = kernels_of("moments_norm_f32", 1);
const ReductionKernels kNormBF16 = kernels_of("moments_norm_bf16", 1);
const ReductionKernels kNormAny = kernels_of("moments_norm_any", 1);
const ReductionKernels kPower = kernels_of("moments_power", 1);
const ReductionKernels kLargest = kernels_of("moments_largest", 1);
const ReductionKernels kSmallest = kernels_of("moments_smallest", 1);

using MaybeDims = std::optional<IntList>;

ReducePlan plan_for(const In& self, IntList dims) {
  return plan_reduction(self, dim_mask("reduce", dims, self.rank));
}

/// `mean` may be null.
void variance(const Out& out, const Out* mean, const In& self, MaybeDims dims,
              std::optional<Scalar> correction, int32_t variant) {
  reduce(kVar, self, plan_for(self, dims.value_or(IntList())), out, mean,
         {correction.value_or(1).to_double(), variant});
}
void var(const Out& out, const In& self, MaybeDims dims, std::optional<Scalar> correction, bool) {
  variance(out, nullptr, self, dims, correction, kVariance);
}
void standard_deviation(const Out& out, const In& self, MaybeDims dims,
                        std::optional<Scalar> correction, bool) {
  variance(out, nullptr, self, dims, correction, kStandardDeviation);
}
void var_mean(const Out& out, const Out& mean, const In& self, MaybeDims dims,
              std::optional<Scalar> correction, bool) {
  variance(out, &mean, self, dims, correction, kVariance);
}

void logsumexp(const Out& out, const In& self, IntList dims, bool) {
  reduce(kLogSumExp, self, plan_for(self, dims), out);
}

const ReductionKernels& norm_kernels(DType dtype) {
  if (dtype == DType::kF32) return kNormF32;
  return dtype == DType::kBF16 ? kNormBF16 : kNormAny;
}

void vector_norm(const Out& out, const In& self, Scalar ord, MaybeDims dims, bool,
                 std::optional<DType>) {
  const ReducePlan plan = plan_for(self, dims.value_or(IntList()));
  const double p = ord.to_double();
  const auto run = [&](const ReductionKernels& kernels, int32_t variant) {
    reduce(kernels, self, plan, out, nullptr, {p, variant});
  };
  if (p == 0) return run(kPower, kCountNonzero);
  if (p == 1) return run(kPower, kFirstPower);
  if (p == 2) return run(norm_kernels(self.dtype), 0);
  if (p == kInfinity) return run(kLargest, 0);
  if (p == -kInfinity) return run(kSmallest, 0);
  run(kPower, kAnyPower);
}

}  // namespace

LS_KERNEL(CUDA, "var.correction", var, Strides::kAny);
LS_KERNEL(CUDA, "std.correction", standard_deviation, Strides::kAny);
LS_KERNEL(CUDA, "var_mean.correction", var_mean, Strides::kAny);
LS_KERNEL(CUDA, "logsumexp", logsumexp, Strides::kAny);
LS_KERNEL(CUDA, "linalg_vector_norm", vector_norm, Strides::kAny);

}  // namespace lockstep::cuda
