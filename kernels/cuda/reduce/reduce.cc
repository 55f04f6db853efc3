#include "core/dispatch/kernel.h"
#include "core/tensor/shape.h"
#include "kernels/cuda/reduce/reduce_launch.h"
#include "kernels/cuda/reduce/sum.h"

// Each header defines a kImage, so each is included in a namespace of its own.
namespace lockstep::cuda::reduce_sum {
#include "kernels/cuda/reduce/reduce_sum.fatbin.h"
}
namespace lockstep::cuda::reduce_prod {
#include "kernels/cuda/reduce/reduce_prod.fatbin.h"
}
namespace lockstep::cuda::reduce_amax {
#include "kernels/cuda/reduce/reduce_amax.fatbin.h"
}
namespace lockstep::cuda::reduce_amin {
#include "kernels/cuda/reduce/reduce_amin.fatbin.h"
}
namespace lockstep::cuda::reduce_truth {
#include "kernels/cuda/reduce/reduce_truth.fatbin.h"
}

namespace lockstep::cuda {

namespace {

const ReductionFamily kSum(reduce_sum::kImage, "reduce_sum", "SumOf", /*packs=*/true);
const ReductionFamily kAmax(reduce_amax::kImage, "reduce_amax", "LargestOf");
const ReductionFamily kAmin(reduce_amin::kImage, "reduce_amin", "SmallestOf");
const ReductionKernels kProdFloating(reduce_prod::kImage, "reduce_prod_floating", sizeof(double), 1,
                                     "SimpleFold<lockstep::ProductOf<double>>, AnyDType");
const ReductionKernels kProdInt(reduce_prod::kImage, "reduce_prod_int", sizeof(int64_t), 1,
                                "SimpleFold<lockstep::ProductOf<int64_t>>, AnyDType");
const ReductionKernels kAny(reduce_truth::kImage, "reduce_any", sizeof(int32_t), 1,
                            "SimpleFold<AnyOf>, AnyTruth");
const ReductionKernels kAll(reduce_truth::kImage, "reduce_all", sizeof(int32_t), 1,
                            "SimpleFold<AllOf>, AnyTruth");

ReducePlan plan_for(const In& self, IntList dims) {
  return plan_reduction(self, dim_mask("reduce", dims, self.rank));
}

void sum_or_mean(const Out& out, const In& self, IntList dims, bool mean = false) {
  const ReducePlan plan = plan_for(self, dims);
  reduce(kSum[self.dtype], self, plan, out, nullptr, {mean ? static_cast<double>(plan.count) : -1});
}
void sum_dims(const Out& out, const In& self, std::optional<IntList> dims, bool,
              std::optional<DType>) {
  sum_or_mean(out, self, dims.value_or(IntList()));
}
void sum(const Out& out, const In& self, std::optional<DType>) { sum_or_mean(out, self, {}); }
void mean_dims(const Out& out, const In& self, std::optional<IntList> dims, bool,
               std::optional<DType>) {
  sum_or_mean(out, self, dims.value_or(IntList()), true);
}
void mean(const Out& out, const In& self, std::optional<DType>) {
  sum_or_mean(out, self, {}, true);
}

void amax(const Out& out, const In& self, IntList dims, bool) {
  reduce(kAmax[self.dtype], self, plan_for(self, dims), out);
}
void amin(const Out& out, const In& self, IntList dims, bool) {
  reduce(kAmin[self.dtype], self, plan_for(self, dims), out);
}
void max(const Out& out, const In& self) { amax(out, self, {}, false); }
void min(const Out& out, const In& self) { amin(out, self, {}, false); }

void prod_over(const Out& out, const In& self, IntList dims) {
  reduce(is_floating(self.dtype) ? kProdFloating : kProdInt, self, plan_for(self, dims), out);
}
void prod(const Out& out, const In& self, std::optional<DType>) { prod_over(out, self, {}); }
void prod_dim(const Out& out, const In& self, int64_t dim, bool, std::optional<DType>) {
  prod_over(out, self, {dim});
}

void truth_over(const ReductionKernels& kernels, const Out& out, const In& self, IntList dims) {
  reduce(kernels, self, plan_for(self, dims), out);
}
/// No list reduces all dimensions, an empty list none.
void truth_over_list(const ReductionKernels& kernels, const Out& out, const In& self,
                     std::optional<IntList> dims) {
  if (dims && dims->empty()) return reduce(kernels, self, plan_reduction(self, 0), out);
  truth_over(kernels, out, self, dims.value_or(IntList()));
}
void any_dims(const Out& out, const In& self, std::optional<IntList> dims, bool) {
  truth_over_list(kAny, out, self, dims);
}
void any_dim(const Out& out, const In& self, int64_t dim, bool) {
  truth_over(kAny, out, self, {dim});
}
void any(const Out& out, const In& self) { truth_over(kAny, out, self, {}); }
void all_dims(const Out& out, const In& self, std::optional<IntList> dims, bool) {
  truth_over_list(kAll, out, self, dims);
}
void all_dim(const Out& out, const In& self, int64_t dim, bool) {
  truth_over(kAll, out, self, {dim});
}
void all(const Out& out, const In& self) { truth_over(kAll, out, self, {}); }

}  // namespace

void sum_over(const Out& out, const In& self, IntList dims) { sum_or_mean(out, self, dims); }

LS_KERNEL(CUDA, "sum", sum, Strides::kAny);
LS_KERNEL(CUDA, "sum.dim_IntList", sum_dims, Strides::kAny);
LS_KERNEL(CUDA, "mean", mean, Strides::kAny);
LS_KERNEL(CUDA, "mean.dim", mean_dims, Strides::kAny);
LS_KERNEL(CUDA, "prod", prod, Strides::kAny);
LS_KERNEL(CUDA, "prod.dim_int", prod_dim, Strides::kAny);
LS_KERNEL(CUDA, "amax", amax, Strides::kAny);
LS_KERNEL(CUDA, "amin", amin, Strides::kAny);
LS_KERNEL(CUDA, "max", max, Strides::kAny);
LS_KERNEL(CUDA, "min", min, Strides::kAny);
LS_KERNEL(CUDA, "any", any, Strides::kAny);
LS_KERNEL(CUDA, "any.dim", any_dim, Strides::kAny);
LS_KERNEL(CUDA, "any.dims", any_dims, Strides::kAny);
LS_KERNEL(CUDA, "all", all, Strides::kAny);
LS_KERNEL(CUDA, "all.dim", all_dim, Strides::kAny);
LS_KERNEL(CUDA, "all.dims", all_dims, Strides::kAny);

}  // namespace lockstep::cuda
