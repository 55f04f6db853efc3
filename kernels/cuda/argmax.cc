#include "core/library.h"
#include "core/shape.h"
#include "kernels/cuda/reduce_launch.h"

// Each header defines a kImage.
namespace lockstep::cuda::argmax_kernels {
#include "kernels/cuda/argmax.fatbin.h"
}
namespace lockstep::cuda::argmin_kernels {
#include "kernels/cuda/argmin.fatbin.h"
}

namespace lockstep::cuda {

namespace {

/// `values` may be null.
void take_along(bool largest, const Out* values, const Out& indices, const In& self,
                std::optional<int64_t> dim) {
  const std::string name = largest ? "argmax" : "argmin";
  const void* const image = largest ? argmax_kernels::kImage : argmin_kernels::kImage;
  const uint64_t mask = dim ? dim_mask(name, {*dim}, self.rank) : dim_mask(name, {}, self.rank);
  const bool half = self.dtype == DType::kF16 || self.dtype == DType::kBF16;
  constexpr size_t kStateBytes = 16;  // a value and an index
  reduce({image, name + "_" + (half ? "half" : reduce_suffix(self.dtype)), kStateBytes}, self,
         plan_reduction(self, mask), indices, values);
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

// Contiguous, so that elements are numbered in their order when all are one result.
LS_KERNEL(CUDA, "argmax", argmax, Strides::kContiguous);
LS_KERNEL(CUDA, "argmin", argmin, Strides::kContiguous);
LS_KERNEL(CUDA, "max.dim", max_dim, Strides::kContiguous);
LS_KERNEL(CUDA, "min.dim", min_dim, Strides::kContiguous);

}  // namespace lockstep::cuda
