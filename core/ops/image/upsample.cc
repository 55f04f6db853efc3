#include "core/ops/image/upsample.h"

#include <cmath>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/view/kept_layout.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
namespace {

/// Shape of images of shape `input` resampled to `output_size`.
Dims resampled_sizes(std::string_view op, IntList input, IntList output_size) {
  const bool image = input.size() == 4 && input[1] > 0 && input[2] > 0 && input[3] > 0;
  LS_CHECK(image, ShapeError,
           "[{}] expected images [N, C, H, W] with channels and pixels, got shape {}.", op,
           to_string(input));
  LS_CHECK(output_size.size() == 2 && output_size[0] > 0 && output_size[1] > 0, ShapeError,
           "[{}] expected two positive numbers for output_size, got {}.", op,
           to_string(output_size));
  return {input[0], input[1], output_size[0], output_size[1]};
}

void require_floating(std::string_view op, const Tensor& tensor) {
  LS_CHECK(is_floating(tensor.dtype()), DTypeError,
           "[{}] expected a floating dtype, got {}. Cast it with to(dtype).", op,
           to_string(tensor));
}

Outputs forward(std::string_view op, const Tensor& self, IntList output_size) {
  LS_CHECK(is_floating(self.dtype()) || self.dtype() == DType::kU8, DTypeError,
           "[{}] expected a floating dtype or uint8, got {}. Cast it with to(dtype).", op,
           to_string(self));
  Outputs outputs = one(resampled_sizes(op, self.sizes(), output_size), self.dtype());
  keep_format(outputs.specs[0], self);
  return outputs;
}

Outputs backward(std::string_view op, const Tensor& grad, IntList output_size, IntList input_size) {
  require_floating(op, grad);
  const Dims sizes = resampled_sizes(op, input_size, output_size);
  LS_CHECK(same(grad.sizes(), sizes), ShapeError,
           "[{}] the gradient does not fit: expected shape {}, got {}.", op, to_string(sizes),
           grad.shape());
  Outputs outputs = one(input_size, grad.dtype());
  keep_format(outputs.specs[0], grad);
  return outputs;
}

Outputs upsample_nearest2d(const Tensor& self, IntList output_size, std::optional<double>,
                           std::optional<double>) {
  return forward("upsample_nearest2d", self, output_size);
}

Outputs upsample_nearest2d_backward(const Tensor& grad_output, IntList output_size,
                                    IntList input_size, std::optional<double>,
                                    std::optional<double>) {
  return backward("upsample_nearest2d_backward", grad_output, output_size, input_size);
}

Outputs upsample_smooth2d(const Tensor& self, IntList output_size, bool, std::optional<double>,
                          std::optional<double>) {
  return forward("upsample_bilinear2d/bicubic2d", self, output_size);
}

Outputs upsample_smooth2d_backward(const Tensor& grad_output, IntList output_size,
                                   IntList input_size, bool, std::optional<double>,
                                   std::optional<double>) {
  return backward("upsample_bilinear2d/bicubic2d_backward", grad_output, output_size, input_size);
}

}  // namespace
}  // namespace rules

namespace {

using Number = std::optional<double>;
using Smooth = Tensor (*)(const Tensor&, IntList, bool, Number, Number);
using SmoothBackward = Tensor (*)(const Tensor&, IntList, IntList, bool, Number, Number);

template <SmoothBackward kBackward>
Gradients smooth_vjp(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] {
    return kBackward(grad, ctx.argument<IntList>(1), ctx.sizes(0), ctx.argument<bool>(2),
                     ctx.argument<Number>(3), ctx.argument<Number>(4));
  });
}
template <Smooth kForward>
Gradients smooth_backward_vjp(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] {
    return kForward(grad, ctx.argument<IntList>(1), ctx.argument<bool>(3), ctx.argument<Number>(4),
                    ctx.argument<Number>(5));
  });
}

/// Arguments of the .vec forms: the output sizes, given directly or computed from scales.
struct Resampling {
  Dims sizes;
  Number scales[2];

  Resampling(std::string_view op, const Tensor& input, std::optional<IntList> output_size,
             std::optional<DoubleList> scale_factors) {
    LS_CHECK(output_size.has_value() != scale_factors.has_value(), ShapeError,
             "[{}] expected either output_size or scale_factors, got {}.", op,
             output_size ? "both" : "neither");
    LS_CHECK(input.dim() == 4, ShapeError, "[{}] expected images [N, C, H, W], got shape {}.", op,
             input.shape());
    if (output_size) {
      sizes = to_dims(*output_size);
      return;
    }
    LS_CHECK(scale_factors->size() == 2, ShapeError,
             "[{}] expected scale_factors for height and width, got {} numbers.", op,
             scale_factors->size());
    for (size_t i = 0; i < 2; ++i) {
      scales[i] = (*scale_factors)[i];
      const double size = static_cast<double>(input.sizes()[i + 2]) * *scales[i];
      LS_CHECK(
          size >= 0 && size < 0x1p63, ShapeError,
          "[{}] expected scale_factors of at least 0 that give sizes below 2^63, got {} for {}.",
          op, *scales[i], input.shape());
      sizes.push_back(static_cast<int64_t>(std::floor(size)));
    }
  }
};

}  // namespace

LS_OP(upsample_nearest2d, Tensor(const Tensor&, IntList, Number, Number),
      "upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
      "scales_w=None) -> Tensor")
    .doc("Images resampled to the nearest pixel.")
    .structured(rules::upsample_nearest2d)
    .batching(batching::images_2d)
    .out()
    .autocast(Autocast::kF32)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return upsample_nearest2d_backward(grad, ctx.argument<IntList>(1), ctx.sizes(0),
                                           ctx.argument<Number>(2), ctx.argument<Number>(3));
      });
    });
Tensor upsample_nearest2d(const Tensor& self, IntList output_size, Number scales_h,
                          Number scales_w) {
  return op_upsample_nearest2d(self, output_size, scales_h, scales_w);
}

LS_OP(upsample_nearest2d_backward, Tensor(const Tensor&, IntList, IntList, Number, Number),
      "upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
      "input_size, float? scales_h=None, float? scales_w=None) -> Tensor")
    .doc("The derivative of upsample_nearest2d.")
    .structured(rules::upsample_nearest2d_backward)
    .batching(batching::images_2d)
    .out("grad_input")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return upsample_nearest2d(grad, ctx.argument<IntList>(1), ctx.argument<Number>(3),
                                  ctx.argument<Number>(4));
      });
    });
Tensor upsample_nearest2d_backward(const Tensor& grad_output, IntList output_size,
                                   IntList input_size, Number scales_h, Number scales_w) {
  return op_upsample_nearest2d_backward(grad_output, output_size, input_size, scales_h, scales_w);
}

LS_OP(upsample_nearest2d_vec,
      Tensor(const Tensor&, std::optional<IntList>, std::optional<DoubleList>),
      "upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> "
      "Tensor")
    .doc("upsample_nearest2d to a size or by factors.")
    .composite([](const Tensor& input, std::optional<IntList> output_size,
                  std::optional<DoubleList> scale_factors) {
      const Resampling to("upsample_nearest2d", input, output_size, scale_factors);
      return upsample_nearest2d(input, to.sizes, to.scales[0], to.scales[1]);
    });
LS_OP(upsample_nearest2d_vec_out,
      const Tensor&(const Tensor&, std::optional<IntList>, std::optional<DoubleList>,
                    const Tensor&),
      "upsample_nearest2d.vec_out(Tensor input, SymInt[]? output_size, float[]? scale_factors, *, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("upsample_nearest2d.vec, written into out.")
    .composite([](const Tensor& input, std::optional<IntList> output_size,
                  std::optional<DoubleList> scale_factors, const Tensor& out) -> const Tensor& {
      const Resampling to("upsample_nearest2d", input, output_size, scale_factors);
      return op_upsample_nearest2d.out(input, to.sizes, to.scales[0], to.scales[1], out);
    });

LS_OP(upsample_bilinear2d, Tensor(const Tensor&, IntList, bool, Number, Number),
      "upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
      "scales_h=None, float? scales_w=None) -> Tensor")
    .doc("Images resampled by bilinear interpolation.")
    .structured(rules::upsample_smooth2d)
    .batching(batching::images_2d)
    .out()
    .autocast(Autocast::kF32)
    .derivative(smooth_vjp<upsample_bilinear2d_backward>);
Tensor upsample_bilinear2d(const Tensor& self, IntList output_size, bool align_corners,
                           Number scales_h, Number scales_w) {
  return op_upsample_bilinear2d(self, output_size, align_corners, scales_h, scales_w);
}

LS_OP(upsample_bilinear2d_backward, Tensor(const Tensor&, IntList, IntList, bool, Number, Number),
      "upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
      "input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
    .doc("The derivative of upsample_bilinear2d.")
    .structured(rules::upsample_smooth2d_backward)
    .batching(batching::images_2d)
    .out("grad_input")
    .derivative(smooth_backward_vjp<upsample_bilinear2d>);
Tensor upsample_bilinear2d_backward(const Tensor& grad_output, IntList output_size,
                                    IntList input_size, bool align_corners, Number scales_h,
                                    Number scales_w) {
  return op_upsample_bilinear2d_backward(grad_output, output_size, input_size, align_corners,
                                         scales_h, scales_w);
}

LS_OP(upsample_bilinear2d_vec,
      Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DoubleList>),
      "upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
      "scale_factors) -> Tensor")
    .doc("upsample_bilinear2d to a size or by factors.")
    .composite([](const Tensor& input, std::optional<IntList> output_size, bool align_corners,
                  std::optional<DoubleList> scale_factors) {
      const Resampling to("upsample_bilinear2d", input, output_size, scale_factors);
      return upsample_bilinear2d(input, to.sizes, align_corners, to.scales[0], to.scales[1]);
    });
LS_OP(upsample_bilinear2d_vec_out,
      const Tensor&(const Tensor&, std::optional<IntList>, bool, std::optional<DoubleList>,
                    const Tensor&),
      "upsample_bilinear2d.vec_out(Tensor input, SymInt[]? output_size, bool align_corners, "
      "float[]? scale_factors, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("upsample_bilinear2d.vec, written into out.")
    .composite([](const Tensor& input, std::optional<IntList> output_size, bool align_corners,
                  std::optional<DoubleList> scale_factors, const Tensor& out) -> const Tensor& {
      const Resampling to("upsample_bilinear2d", input, output_size, scale_factors);
      return op_upsample_bilinear2d.out(input, to.sizes, align_corners, to.scales[0], to.scales[1],
                                        out);
    });

LS_OP(upsample_bicubic2d, Tensor(const Tensor&, IntList, bool, Number, Number),
      "upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
      "scales_h=None, float? scales_w=None) -> Tensor")
    .doc("Images resampled by bicubic interpolation.")
    .structured(rules::upsample_smooth2d)
    .batching(batching::images_2d)
    .out()
    .autocast(Autocast::kF32)
    .derivative(smooth_vjp<upsample_bicubic2d_backward>);
Tensor upsample_bicubic2d(const Tensor& self, IntList output_size, bool align_corners,
                          Number scales_h, Number scales_w) {
  return op_upsample_bicubic2d(self, output_size, align_corners, scales_h, scales_w);
}

LS_OP(upsample_bicubic2d_backward, Tensor(const Tensor&, IntList, IntList, bool, Number, Number),
      "upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
      "input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
    .doc("The derivative of upsample_bicubic2d.")
    .structured(rules::upsample_smooth2d_backward)
    .batching(batching::images_2d)
    .out("grad_input")
    .derivative(smooth_backward_vjp<upsample_bicubic2d>);
Tensor upsample_bicubic2d_backward(const Tensor& grad_output, IntList output_size,
                                   IntList input_size, bool align_corners, Number scales_h,
                                   Number scales_w) {
  return op_upsample_bicubic2d_backward(grad_output, output_size, input_size, align_corners,
                                        scales_h, scales_w);
}

LS_OP(upsample_bicubic2d_vec,
      Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DoubleList>),
      "upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
      "scale_factors) -> Tensor")
    .doc("upsample_bicubic2d to a size or by factors.")
    .composite([](const Tensor& input, std::optional<IntList> output_size, bool align_corners,
                  std::optional<DoubleList> scale_factors) {
      const Resampling to("upsample_bicubic2d", input, output_size, scale_factors);
      return upsample_bicubic2d(input, to.sizes, align_corners, to.scales[0], to.scales[1]);
    });

}  // namespace lockstep
