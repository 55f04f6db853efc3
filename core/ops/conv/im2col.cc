#include "core/ops/conv/im2col.h"

#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/conv/im2col_rules.h"

namespace lockstep {

LS_OP(im2col, Tensor(const Tensor&, IntList, IntList, IntList, IntList),
      "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> "
      "Tensor")
    .doc("The windows of images as columns.")
    .structured(rules::im2col)
    .batching(batching::images_2d)
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return col2im(grad, ctx.sizes(0).last(2), ctx.argument<IntList>(1),
                      ctx.argument<IntList>(2), ctx.argument<IntList>(3), ctx.argument<IntList>(4));
      });
    });
Tensor im2col(const Tensor& self, IntList kernel_size, IntList dilation, IntList padding,
              IntList stride) {
  return op_im2col(self, kernel_size, dilation, padding, stride);
}

LS_OP(col2im, Tensor(const Tensor&, IntList, IntList, IntList, IntList, IntList),
      "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] "
      "padding, int[2] stride) -> Tensor")
    .doc("Columns added back to the windows of images: the derivative of im2col.")
    .structured(rules::col2im)
    .batching(batching::images_1d)
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return im2col(grad, ctx.argument<IntList>(2), ctx.argument<IntList>(3),
                      ctx.argument<IntList>(4), ctx.argument<IntList>(5));
      });
    });
Tensor col2im(const Tensor& self, IntList output_size, IntList kernel_size, IntList dilation,
              IntList padding, IntList stride) {
  return op_col2im(self, output_size, kernel_size, dilation, padding, stride);
}

}  // namespace lockstep
