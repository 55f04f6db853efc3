#include "core/dispatch/kernel.h"
#include "core/tensor/shape.h"
#include "kernels/cuda/reduce/reduce_launch.h"

// Each header defines a kImage, so each is included in a namespace of its own.
namespace lockstep::cuda::argmax_kernels {
#include "kernels/cuda/reduce/argmax.fatbin.h"
}
namespace lockstep::cuda::argmin_kernels {
#include "kernels/cuda/reduce/argmin.fatbin.h"
}

namespace lockstep::cuda {

namespace {

/// Reductions whose state is a value and an index.
struct TakeKernels {
  ReductionKernels f32, f64, halves, integers;
  TakeKernels(const void* image, const std::string& name)
      : f32(image, name + "_f32", 16),
        f64(image, name + "_f64", 16),
        halves(image, name + "_half", 16),
        integers(image, name + "_int", 16) {}
  const ReductionKernels& operator[](DType dtype) const {
    if (!is_floating(dtype)) return integers;
    return dtype == DType::kF32 ? f32 : dtype == DType::kF64 ? f64 : halves;
  }
};
const TakeKernels kArgmax(argmax_kernels::kImage, "argmax");
const TakeKernels kArgmin(argmin_kernels::kImage, "argmin");

/// `values` may be null.
void take_along(bool largest, const Out* values, const Out& indices, const In& self,
                std::optional<int64_t> dim) {
  const char* const name = largest ? "argmax" : "argmin";
  const uint64_t mask = dim ? dim_mask(name, {*dim}, self.rank) : dim_mask(name, {}, self.rank);
  reduce((largest ? kArgmax : kArgmin)[self.dtype], self, plan_reduction(self, mask), indices,
         values);
}

void argmax(const Out& out, const In& self, std::optional<int64_t> dim, bool) {
  take_along(true, nullptr, out, self, dim);
}
void argmin(const Out& out, const In& self, std::optional<int64_t> dim, bool) {
  take_along(false, nullptr, out, self, dim);
}
void max_dim(const Out& values, const Out& indices, const In& self, int64_t dim, bool) {
  take_along(true, &values, indices, self, dim);
}
void min_dim(const Out& values, const Out& indices, const In& self, int64_t dim, bool) {
  take_along(false, &values, indices, self, dim);
}

}  // namespace

// Contiguous, so that element indices follow memory order when all are reduced to one result.
LS_KERNEL(CUDA, "argmax", argmax, Strides::kContiguous);
LS_KERNEL(CUDA, "argmin", argmin, Strides::kContiguous);
LS_KERNEL(CUDA, "max.dim", max_dim, Strides::kContiguous);
LS_KERNEL(CUDA, "min.dim", min_dim, Strides::kContiguous);

}  // namespace lockstep::cuda
