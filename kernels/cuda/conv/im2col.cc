#include "kernels/cuda/conv/im2col.h"

#include "core/dispatch/kernel.h"
#include "kernels/cuda/conv/im2col.fatbin.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"

namespace lockstep::cuda {

namespace {

const UnitKernels kIm2col(kImage, "im2col");
const DTypeKernels kCol2im(kImage, "col2im",
                           {DType::kBool, DType::kF32, DType::kBF16, DType::kF16, DType::kF64});

Im2col params_of(const Out& to, const In& from, const TensorArg& images, IntList kernel_size,
                 IntList dilation, IntList padding, IntList stride) {
  Im2col p{};
  p.from = from.address;
  p.to = to.address;
  p.numel = to.numel;
  for (int i = 0; i < 2; ++i) {
    const size_t k = static_cast<size_t>(i);
    p.image[i] = images.size(i - 2);
    p.kernel[i] = kernel_size[k];
    p.dilation[i] = dilation[k];
    p.padding[i] = padding[k];
    p.stride[i] = stride[k];
    p.counts[i] =
        (p.image[i] + 2 * p.padding[i] - p.dilation[i] * (p.kernel[i] - 1) - 1) / p.stride[i] + 1;
  }
  return p;
}

void run(Kernel kernel, const Im2col& p) {
  launch(kernel, {.blocks = {blocks_for(p.numel, 256), 1, 1}, .threads = 256, .shared_bytes = 0},
         p);
}

void im2col(const Out& out, const In& self, IntList kernel_size, IntList dilation, IntList padding,
            IntList stride) {
  if (out.numel == 0 || self.numel == 0) return;
  Im2col p = params_of(out, self, self, kernel_size, dilation, padding, stride);
  const int64_t taps = p.kernel[0] * p.kernel[1], rows = taps * p.counts[0];
  p.plane = IndexSplitter(rows * p.counts[1], p.numel);
  p.row = IndexSplitter(p.counts[1], rows * p.counts[1]);
  p.tap = IndexSplitter(p.counts[0], rows);
  p.tap_row = IndexSplitter(p.kernel[1], taps);
  run(kIm2col[size_of(out.dtype)], p);
}

void col2im(const Out& out, const In& self, IntList, IntList kernel_size, IntList dilation,
            IntList padding, IntList stride) {
  if (out.numel == 0) return;
  Im2col p = params_of(out, self, out, kernel_size, dilation, padding, stride);
  p.plane = IndexSplitter(p.image[0] * p.image[1], p.numel);
  p.row = IndexSplitter(p.image[1], p.image[0] * p.image[1]);
  run(kCol2im[out.dtype], p);
}

}  // namespace

LS_KERNEL(CUDA, "im2col", im2col, Strides::kContiguous);
LS_KERNEL(CUDA, "col2im", col2im, Strides::kContiguous);

}  // namespace lockstep::cuda
