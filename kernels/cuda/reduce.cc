#include "core/library.h"
#include "core/shape.h"
#include "kernels/cuda/reduce_launch.h"

// Each header defines a kImage.
namespace lockstep::cuda::reduce_sum {
#include "kernels/cuda/reduce_sum.fatbin.h"
}
namespace lockstep::cuda::reduce_prod {
#include "kernels/cuda/reduce_prod.fatbin.h"
}
namespace lockstep::cuda::reduce_amax {
#include "kernels/cuda/reduce_amax.fatbin.h"
}
namespace lockstep::cuda::reduce_amin {
#include "kernels/cuda/reduce_amin.fatbin.h"
}
namespace lockstep::cuda::reduce_truth {
#include "kernels/cuda/reduce_truth.fatbin.h"
}

namespace lockstep::cuda {

namespace {

ReducePlan plan_for(const In& self, IntList dims) {
  return plan_reduction(self, dim_mask("reduce", dims, self.rank));
}

size_t state_bytes(DType dtype) {
  return is_floating(dtype) && dtype != DType::kF64 ? sizeof(float) : sizeof(double);
}

void sum_over(const Out& out, const In& self, IntList dims, bool mean = false) {
  const DType dtype = self.dtype;
  const bool packed = is_floating(dtype) && dtype != DType::kF64;
  const ReductionKernels kernels{reduce_sum::kImage, "reduce_sum_" + reduce_suffix(dtype),
                                 state_bytes(dtype),
                                 packed ? 16 / static_cast<int64_t>(size_of(dtype)) : 1};
  const ReducePlan plan = plan_for(self, dims);
  reduce(kernels, self, plan, out, nullptr, {mean ? static_cast<double>(plan.count) : -1});
}
void sum_dims(const Out& out, const In& self, std::optional<IntList> dims, bool,
              std::optional<DType>) {
  sum_over(out, self, dims.value_or(IntList()));
}
void sum(const Out& out, const In& self, std::optional<DType>) { sum_over(out, self, {}); }
void mean_dims(const Out& out, const In& self, std::optional<IntList> dims, bool,
               std::optional<DType>) {
  sum_over(out, self, dims.value_or(IntList()), true);
}
void mean(const Out& out, const In& self, std::optional<DType>) { sum_over(out, self, {}, true); }

void amax(const Out& out, const In& self, IntList dims, bool) {
  reduce({reduce_amax::kImage, "reduce_amax_" + reduce_suffix(self.dtype), state_bytes(self.dtype)},
         self, plan_for(self, dims), out);
}
void amin(const Out& out, const In& self, IntList dims, bool) {
  reduce({reduce_amin::kImage, "reduce_amin_" + reduce_suffix(self.dtype), state_bytes(self.dtype)},
         self, plan_for(self, dims), out);
}
void max(const Out& out, const In& self) { amax(out, self, {}, false); }
void min(const Out& out, const In& self) { amin(out, self, {}, false); }

void prod_over(const Out& out, const In& self, IntList dims) {
  const char* const name = is_floating(self.dtype) ? "reduce_prod_floating" : "reduce_prod_int";
  reduce({reduce_prod::kImage, name, sizeof(double)}, self, plan_for(self, dims), out);
}
void prod(const Out& out, const In& self, std::optional<DType>) { prod_over(out, self, {}); }
void prod_dim(const Out& out, const In& self, int64_t dim, bool, std::optional<DType>) {
  prod_over(out, self, {dim});
}

void truth(const char* name, const Out& out, const In& self, uint64_t mask) {
  reduce({reduce_truth::kImage, name, sizeof(int32_t)}, self, plan_reduction(self, mask), out);
}
void truth_over(const char* name, const Out& out, const In& self, IntList dims) {
  truth(name, out, self, dim_mask("reduce", dims, self.rank));
}
/// Without a list all dimensions are reduced, with an empty one none.
void truth_over_list(const char* name, const Out& out, const In& self,
                     std::optional<IntList> dims) {
  if (dims && dims->empty()) return truth(name, out, self, 0);
  truth_over(name, out, self, dims.value_or(IntList()));
}
void any_dims(const Out& out, const In& self, std::optional<IntList> dims, bool) {
  truth_over_list("reduce_any", out, self, dims);
}
void any_dim(const Out& out, const In& self, int64_t dim, bool) {
  truth_over("reduce_any", out, self, {dim});
}
void any(const Out& out, const In& self) { truth_over("reduce_any", out, self, {}); }
void all_dims(const Out& out, const In& self, std::optional<IntList> dims, bool) {
  truth_over_list("reduce_all", out, self, dims);
}
void all_dim(const Out& out, const In& self, int64_t dim, bool) {
  truth_over("reduce_all", out, self, {dim});
}
void all(const Out& out, const In& self) { truth_over("reduce_all", out, self, {}); }

}  // namespace

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
