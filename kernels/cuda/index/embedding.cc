#include "kernels/cuda/index/embedding.h"

#include "core/dispatch/kernel.h"
#include "kernels/cuda/factory/fill.h"
#include "kernels/cuda/index/embedding.fatbin.h"
#include "kernels/cuda/index/grouping.h"
#include "kernels/cuda/index/indexed_tensor.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"

namespace lockstep::cuda {

namespace {

const DTypeKernels kSum(kImage, "embedding_sum");
const DTypeKernels kSumWide(kImage, "embedding_sum", kFloatingDTypes, "_wide");
const FaultKind kOutOfRange = index_fault("embedding_dense_backward");

/// True if rows are whole 16-byte units, and aligned.
bool is_wide(const TensorArg& tensor, int64_t width) {
  return width * static_cast<int64_t>(size_of(tensor.dtype)) % 16 == 0 &&
         reinterpret_cast<uintptr_t>(tensor.address) % 16 == 0;
}

/// Sets the rows of `out` that are used to the sums of their uses, or adds these.
void sum_uses(const Out& out, const In& grad_output, const In& indices, int64_t padding_idx,
              bool scale_grad_by_freq, bool adds) {
  const int64_t num_weights = out.size(0);
  if (out.numel == 0 || indices.numel == 0) return;
  Grouping rows("embedding_dense_backward", indices.numel, num_weights);
  IndexList list = index_list(kOutOfRange, indices, num_weights);
  if (padding_idx >= 0) list.skipped = padding_idx;
  read_places(rows.places(), list);
  rows.sort();

  const int64_t width = out.size(1);
  const bool wide = is_wide(out, width) && is_wide(grad_output, width);
  constexpr int64_t kMostBlocks = 1 << 16;
  launch((wide ? kSumWide : kSum)[out.dtype],
         {.blocks = {blocks_for(rows.count(), 1, kMostBlocks), 1, 1}, .threads = 128},
         EmbeddingSum{.rows = rows.sorted_places(),
                      .positions = rows.sorted_positions(),
                      .count = rows.count(),
                      .grad = grad_output.address,
                      .out = out.address,
                      .width = width,
                      .divides = scale_grad_by_freq,
                      .adds = adds});
}

void embedding_dense_backward(const Out& out, const In& grad_output, const In& indices, int64_t,
                              int64_t padding_idx, bool scale_grad_by_freq) {
  if (out.numel == 0) return;
  zero_bytes(out.address, out.numel * static_cast<int64_t>(size_of(out.dtype)));
  sum_uses(out, grad_output, indices, padding_idx, scale_grad_by_freq, false);
}

void embedding_gradient_added(const Out& out, const In& self, const In& grad_output,
                              const In& indices, int64_t padding_idx, bool scale_grad_by_freq) {
  start_from(out, self);
  sum_uses(out, grad_output, indices, padding_idx, scale_grad_by_freq, true);
}

}  // namespace

LS_KERNEL(CUDA, "embedding_dense_backward", embedding_dense_backward, Strides::kContiguous);
LS_KERNEL(CUDA, "_embedding_gradient_added", embedding_gradient_added, Strides::kContiguous);

}  // namespace lockstep::cuda
