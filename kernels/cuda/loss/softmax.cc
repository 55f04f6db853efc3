#include "kernels/cuda/loss/softmax.h"

#include "core/dispatch/kernel.h"
#include "core/tensor/shape.h"
#include "kernels/cuda/kept_rows.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/cuda/row_steps.h"

namespace lockstep::cuda::softmax_forward {
#include "kernels/cuda/loss/softmax.fatbin.h"
}
namespace lockstep::cuda::softmax_backward {
#include "kernels/cuda/loss/softmax_backward.fatbin.h"
}

namespace lockstep::cuda {

namespace {

struct SoftmaxKernels {
  RowKernels rows;
  DTypeKernels columns;
  SoftmaxKernels(const void* image, std::string_view family)
      : rows(image, family), columns(image, family, kFloatingDTypes, "_columns") {}
};
const SoftmaxKernels kForward(softmax_forward::kImage, "softmax");
const SoftmaxKernels kBackward(softmax_backward::kImage, "softmax_backward");

SoftmaxLines lines_of(const Out& out, const In& a, const In* b, int64_t dim, bool log) {
  SoftmaxLines lines{};
  lines.y = out.address;
  lines.a = a.address;
  lines.b = b != nullptr ? b->address : nullptr;
  lines.outer = lines.n = lines.inner = 1;
  lines.out_dtype = out.dtype;
  lines.log = log;
  if (out.rank == 0) return lines;
  const int d = static_cast<int>(wrap_dim("softmax", dim, out.rank));
  lines.n = out.size(d);
  for (int i = 0; i < d; ++i) lines.outer *= out.size(i);
  for (int i = d + 1; i < out.rank; ++i) lines.inner *= out.size(i);
  return lines;
}

void capture_softmax(RowCapture& capture, const SoftmaxLines& lines, DType dtype,
                     RowStrategy strategy) {
  const SoftmaxStep step{lines.out_dtype, lines.log};
  std::vector<const void*> operands{lines.a};
  if (lines.b != nullptr) operands.push_back(lines.b);
  const std::string_view name = lines.b == nullptr ? "softmax_step" : "softmax_backward_step";
  capture_rows(capture, held_function(name, dtype, strategy), is_of_blocks(strategy), "SoftmaxStep",
               step, {lines.y}, std::move(operands));
}

/// `b` is null in the forward pass.
void normalise(const Out& out, const In& a, const In* b, int64_t dim, bool log) {
  if (out.numel == 0) return;
  const SoftmaxKernels& kernels = b == nullptr ? kForward : kBackward;
  const SoftmaxLines lines = lines_of(out, a, b, dim, log);
  if (lines.inner > 1) {
    const int64_t tiles = (lines.inner + kSoftmaxColumns - 1) / kSoftmaxColumns;
    launch(kernels.columns[a.dtype],
           {.blocks = {blocks_for(lines.outer * tiles, 1), 1, 1},
            .threads = kSoftmaxColumns * kSoftmaxColumnThreads},
           lines);
    return;
  }
  const bool aligned = rows_aligned(a.address, a.dtype, lines.n) &&
                       (b == nullptr || rows_aligned(b->address, b->dtype, lines.n)) &&
                       rows_aligned(out.address, out.dtype, lines.n);
  const RowStrategy strategy = row_strategy(a.dtype, lines.n, aligned);
  if (RowCapture* const capture = RowCapture::active(); capture != nullptr) [[unlikely]] {
    if (strategy != RowStrategy::kStream)
      return capture_softmax(*capture, lines, a.dtype, strategy);
  }
  launch(
      kernels.rows(a.dtype, strategy),
      {.blocks = {blocks_for(lines.outer, rows_of_block(strategy)), 1, 1}, .threads = kRowThreads},
      lines);
}

void softmax(const Out& out, const In& self, int64_t dim, bool) {
  normalise(out, self, nullptr, dim, false);
}
void log_softmax(const Out& out, const In& self, int64_t dim, bool) {
  normalise(out, self, nullptr, dim, true);
}
void softmax_backward_data(const Out& out, const In& grad, const In& output, int64_t dim, DType) {
  normalise(out, grad, &output, dim, false);
}
void log_softmax_backward_data(const Out& out, const In& grad, const In& output, int64_t dim,
                               DType) {
  normalise(out, grad, &output, dim, true);
}

}  // namespace

LS_KERNEL(CUDA, "_softmax", softmax, Strides::kContiguous);
LS_KERNEL(CUDA, "_log_softmax", log_softmax, Strides::kContiguous);
LS_KERNEL(CUDA, "_softmax_backward_data", softmax_backward_data, Strides::kContiguous);
LS_KERNEL(CUDA, "_log_softmax_backward_data", log_softmax_backward_data, Strides::kContiguous);

}  // namespace lockstep::cuda
