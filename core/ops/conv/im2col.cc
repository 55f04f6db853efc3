#include "core/ops/conv/im2col.h"

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
namespace {

void check_pair(std::string_view op, std::string_view name, IntList pair, int64_t least) {
  LS_CHECK(pair.size() == 2 && pair[0] >= least && pair[1] >= least, ShapeError,
           "[{}] expected two numbers of at least {} for {}, got {}.", op, least, name,
           to_string(pair));
}

/// Number of windows along height and width.
Dims window_counts(std::string_view op, IntList image, IntList kernel, IntList dilation,
                   IntList padding, IntList stride) {
  check_pair(op, "kernel_size", kernel, 1);
  check_pair(op, "dilation", dilation, 1);
  check_pair(op, "padding", padding, 0);
  check_pair(op, "stride", stride, 1);
  Dims counts;
  for (size_t i = 0; i < 2; ++i) {
    const CheckedInt reach = CheckedInt(op, dilation[i]) * (kernel[i] - 1) + 1;
    const int64_t room = (CheckedInt(op, padding[i]) * 2 + image[i] - reach).value();
    LS_CHECK(room >= 0, ShapeError,
             "[{}] no window of {} with dilation {} fits into an image of {} padded by {}.", op,
             to_string(kernel), to_string(dilation), to_string(image), to_string(padding));
    counts.push_back(room / stride[i] + 1);
  }
  return counts;
}

/// Checks that self is floating or bool and has `rank` dimensions, or one more for a batch. Only
/// the batch may have size 0.
void check_rank(std::string_view op, const Tensor& self, int64_t rank) {
  LS_CHECK(is_floating(self.dtype()) || self.dtype() == DType::kBool, DTypeError,
           "[{}] expected a floating dtype or bool, got {}. Cast it with to(dtype).", op,
           to_string(self));
  bool fits = self.dim() == rank || self.dim() == rank + 1;
  for (int64_t i = 1; fits && i <= rank; ++i) fits = self.size(-i) > 0;
  LS_CHECK(fits, ShapeError,
           "[{}] expected {} dimensions, none of size 0, with or without a batch in front; got "
           "shape {}.",
           op, rank, self.shape());
}

Outputs im2col(const Tensor& self, IntList kernel, IntList dilation, IntList padding,
               IntList stride) {
  check_rank("im2col", self, 3);
  const Dims counts =
      window_counts("im2col", self.sizes().last(2), kernel, dilation, padding, stride);
  Dims sizes = to_dims(self.sizes().first(static_cast<size_t>(self.dim() - 3)));
  sizes.push_back((CheckedInt("im2col", self.size(-3)) * kernel[0] * kernel[1]).value());
  sizes.push_back((CheckedInt("im2col", counts[0]) * counts[1]).value());
  return one(std::move(sizes), self.dtype());
}

Outputs col2im(const Tensor& self, IntList output_size, IntList kernel, IntList dilation,
               IntList padding, IntList stride) {
  check_rank("col2im", self, 2);
  check_pair("col2im", "output_size", output_size, 1);
  const Dims counts = window_counts("col2im", output_size, kernel, dilation, padding, stride);
  const int64_t window = (CheckedInt("col2im", kernel[0]) * kernel[1]).value();
  LS_CHECK(self.size(-2) % window == 0, ShapeError,
           "[col2im] the rows must be a multiple of the window's {} elements, got shape {}.",
           window, self.shape());
  const int64_t columns = (CheckedInt("col2im", counts[0]) * counts[1]).value();
  LS_CHECK(self.size(-1) == columns, ShapeError,
           "[col2im] expected a column for each of {} x {} windows, got shape {}.", counts[0],
           counts[1], self.shape());
  Dims sizes = to_dims(self.sizes().first(static_cast<size_t>(self.dim() - 2)));
  sizes.push_back(self.size(-2) / window);
  sizes.push_back(output_size[0]);
  sizes.push_back(output_size[1]);
  return one(std::move(sizes), self.dtype());
}

}  // namespace
}  // namespace rules

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
