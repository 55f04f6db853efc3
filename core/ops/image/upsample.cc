#include "core/ops/image/upsample.h"

#include <cmath>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/image/upsample_rules.h"

namespace lockstep {

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
