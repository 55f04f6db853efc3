#include "kernels/cuda/matmul/distance.h"

#include "core/base/check.h"
#include "core/dispatch/kernel.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul/distance.fatbin.h"

namespace lockstep::cuda {

namespace {

const DTypeKernels kPairs(kImage, "distance_pairs");
const DTypeKernels kLater(kImage, "distance_later");

/// Sets the strides of x's batch dimensions broadcast to `sizes`; x is contiguous and strides count
/// matrices.
void set_batch_strides(int64_t* strides, const In& x, IntList sizes) {
  const IntList own = x.sizes().first(static_cast<size_t>(x.rank - 2));
  const Dims broadcast = broadcast_strides(own, contiguous_strides(own), sizes);
  for (size_t i = 0; i < sizes.size(); ++i) strides[i] = broadcast[i];
}

void cdist_forward(const Out& out, const In& x1, const In& x2, double norm,
                   std::optional<int64_t>) {
  if (out.numel == 0) return;
  Distance p{};
  p.first = x1.address;
  p.second = x2.address;
  p.out = out.address;
  p.numel = out.numel;
  p.rows = x1.size(-2);
  p.columns = x2.size(-2);
  p.width = x1.size(-1);
  p.p = norm;
  p.matrix = IndexSplitter(p.rows * p.columns, out.numel);
  p.row = IndexSplitter(p.columns, p.rows * p.columns);
  p.rank = out.rank - 2;
  LS_CHECK(p.rank <= Distance::kMostAxes, ShapeError,
           "[_cdist_forward] expected at most {} leading dimensions, got {}. Flatten them.",
           Distance::kMostAxes, p.rank);
  const IntList batch = out.sizes().first(static_cast<size_t>(p.rank));
  for (size_t i = 0; i < batch.size(); ++i) p.sizes[i] = batch[i];
  set_batch_strides(p.first_strides, x1, batch);
  set_batch_strides(p.second_strides, x2, batch);
  launch(kPairs[out.dtype],
         {.blocks = {blocks_for(p.numel, 256), 1, 1}, .threads = 256, .shared_bytes = 0}, p);
}

void pdist_forward(const Out& out, const In& self, double norm) {
  if (out.numel == 0) return;
  Distance p{};
  p.first = p.second = self.address;
  p.out = out.address;
  p.rows = self.size(0);
  p.width = self.size(1);
  p.p = norm;
  launch(kLater[out.dtype],
         {.blocks = {static_cast<unsigned>(p.rows), 1, 1}, .threads = 256, .shared_bytes = 0}, p);
}

}  // namespace

LS_KERNEL(CUDA, "_cdist_forward", cdist_forward, Strides::kContiguous);
LS_KERNEL(CUDA, "_pdist_forward", pdist_forward, Strides::kContiguous);

}  // namespace lockstep::cuda
