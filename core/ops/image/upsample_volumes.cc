// Resampling of lines and volumes, composed of that of images; declared in upsample.h.

#include <cmath>

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/image/upsample.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

using Number = std::optional<double>;
using MaybeSizes = std::optional<IntList>;
using MaybeScales = std::optional<DoubleList>;

void check(std::string_view op, const Tensor& self, IntList output_size, size_t spatial) {
  bool fits = self.dim() == static_cast<int64_t>(spatial) + 2;
  for (int64_t i = 1; fits && i < self.dim(); ++i) fits = self.size(i) > 0;
  LS_CHECK(fits, ShapeError,
           "[{}] expected input [batch, channels, spatial...] with {} spatial dimensions that are "
           "not empty, got shape {}.",
           op, spatial, self.shape());
  fits = output_size.size() == spatial;
  for (const int64_t size : output_size) fits = fits && size > 0;
  LS_CHECK(fits, ShapeError, "[{}] expected {} positive numbers for output_size, got {}.", op,
           spatial, to_string(output_size));
}

void require_floating(std::string_view op, const Tensor& self) {
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[{}] expected a floating dtype, got {}. Cast it with to(dtype).", op, to_string(self));
}

/// Sizes of a result and, if they were given by factors, these.
struct Target {
  Dims sizes;
  std::vector<Number> scales;
};
Target target(std::string_view op, const Tensor& input, MaybeSizes output_size,
              MaybeScales scale_factors, size_t spatial) {
  LS_CHECK(output_size.has_value() != scale_factors.has_value(), ShapeError,
           "[{}] expected either output_size or scale_factors, got {}.", op,
           output_size ? "both" : "neither");
  Target result{{}, std::vector<Number>(spatial)};
  if (output_size) {
    result.sizes = to_dims(*output_size);
    return result;
  }
  LS_CHECK(scale_factors->size() == spatial && input.dim() == static_cast<int64_t>(spatial) + 2,
           ShapeError,
           "[{}] expected a scale factor for each of {} spatial dimensions, got {} for "
           "shape {}.",
           op, spatial, scale_factors->size(), input.shape());
  for (size_t i = 0; i < spatial; ++i) {
    const double size = static_cast<double>(input.sizes()[i + 2]) * (*scale_factors)[i];
    LS_CHECK(size >= 0 && size < 0x1p63, ShapeError,
             "[{}] expected scale_factors of at least 0 that give sizes below 2^63, got {} for {}.",
             op, (*scale_factors)[i], input.shape());
    result.scales[i] = (*scale_factors)[i];
    result.sizes.push_back(static_cast<int64_t>(std::floor(size)));
  }
  return result;
}

/// Resamples [N, C, L] as images of height 1.
template <class Resample>
Tensor lines(std::string_view op, const Tensor& self, IntList output_size, Resample&& resample) {
  check(op, self, output_size, 1);
  return resample(self.unsqueeze(2), IntList({1, output_size[0]})).squeeze(2);
}

/// Resamples [N, C, D, H, W] along D, as images [N, C, D, H W], and then images [N, C D', H, W]:
/// both filters are products of filters along one dimension, and do not change a dimension whose
/// size stays.
template <class Resample>
Tensor volumes(std::string_view op, const Tensor& self, IntList output_size, Resample&& resample) {
  check(op, self, output_size, 3);
  const int64_t batch = self.size(0), channels = self.size(1);
  const int64_t area = self.size(3) * self.size(4);
  const int64_t slices = (CheckedInt(op, channels) * output_size[0]).value();
  Tensor deep = self;
  if (self.size(2) != output_size[0]) {
    deep = resample(self.reshape({batch, channels, self.size(2), area}),
                    IntList({output_size[0], area}), true);
  }
  const Tensor images = resample(deep.reshape({batch, slices, self.size(3), self.size(4)}),
                                 IntList({output_size[1], output_size[2]}), false);
  return images.reshape({batch, channels, output_size[0], output_size[1], output_size[2]});
}

Tensor nearest_lines(const Tensor& self, IntList output_size, Number scale) {
  return lines("upsample_nearest1d", self, output_size, [&](const Tensor& images, IntList sizes) {
    return upsample_nearest2d(images, sizes, std::nullopt, scale);
  });
}
Tensor linear_lines(const Tensor& self, IntList output_size, bool align_corners, Number scale) {
  require_floating("upsample_linear1d", self);
  return lines("upsample_linear1d", self, output_size, [&](const Tensor& images, IntList sizes) {
    return upsample_bilinear2d(images, sizes, align_corners, std::nullopt, scale);
  });
}
Tensor nearest_volumes(const Tensor& self, IntList output_size, Number scales_d, Number scales_h,
                       Number scales_w) {
  return volumes("upsample_nearest3d", self, output_size,
                 [&](const Tensor& images, IntList sizes, bool is_depth) {
                   return is_depth ? upsample_nearest2d(images, sizes, scales_d, std::nullopt)
                                   : upsample_nearest2d(images, sizes, scales_h, scales_w);
                 });
}
Tensor linear_volumes(const Tensor& self, IntList output_size, bool align_corners, Number scales_d,
                      Number scales_h, Number scales_w) {
  require_floating("upsample_trilinear3d", self);
  // What lies between the two steps is not rounded to 16 bits.
  const Tensor wide = self.to(promote(self.dtype(), DType::kF32));
  return volumes("upsample_trilinear3d", wide, output_size,
                 [&](const Tensor& images, IntList sizes, bool is_depth) {
                   return is_depth ? upsample_bilinear2d(images, sizes, align_corners, scales_d,
                                                         std::nullopt)
                                   : upsample_bilinear2d(images, sizes, align_corners, scales_h,
                                                         scales_w);
                 })
      .to(self.dtype());
}

}  // namespace

LS_OP(upsample_nearest1d, Tensor(const Tensor&, IntList, Number),
      "upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor")
    .doc("Lines resampled to the nearest element.")
    .autocast(Autocast::kF32)
    .composite(nearest_lines);
Tensor upsample_nearest1d(const Tensor& self, IntList output_size, Number scales) {
  return op_upsample_nearest1d(self, output_size, scales);
}
LS_OP(upsample_nearest1d_out, const Tensor&(const Tensor&, IntList, Number, const Tensor&),
      "upsample_nearest1d.out(Tensor self, SymInt[1] output_size, float? scales=None, *, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("upsample_nearest1d, written into out.")
    .composite([](const Tensor& self, IntList output_size, Number scales,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_upsample_nearest1d(self, output_size, scales));
    });
LS_OP(upsample_nearest1d_vec, Tensor(const Tensor&, MaybeSizes, MaybeScales),
      "upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> "
      "Tensor")
    .doc("upsample_nearest1d to a size or by factors.")
    .composite([](const Tensor& input, MaybeSizes output_size, MaybeScales scale_factors) {
      const Target to = target("upsample_nearest1d", input, output_size, scale_factors, 1);
      return op_upsample_nearest1d(input, to.sizes, to.scales[0]);
    });

LS_OP(upsample_linear1d, Tensor(const Tensor&, IntList, bool, Number),
      "upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? "
      "scales=None) -> Tensor")
    .doc("Lines resampled by linear interpolation.")
    .autocast(Autocast::kF32)
    .composite(linear_lines);
Tensor upsample_linear1d(const Tensor& self, IntList output_size, bool align_corners,
                         Number scales) {
  return op_upsample_linear1d(self, output_size, align_corners, scales);
}
LS_OP(upsample_linear1d_out, const Tensor&(const Tensor&, IntList, bool, Number, const Tensor&),
      "upsample_linear1d.out(Tensor self, SymInt[1] output_size, bool align_corners, float? "
      "scales=None, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("upsample_linear1d, written into out.")
    .composite([](const Tensor& self, IntList output_size, bool align_corners, Number scales,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_upsample_linear1d(self, output_size, align_corners, scales));
    });
LS_OP(upsample_linear1d_vec, Tensor(const Tensor&, MaybeSizes, bool, MaybeScales),
      "upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
      "scale_factors) -> Tensor")
    .doc("upsample_linear1d to a size or by factors.")
    .composite([](const Tensor& input, MaybeSizes output_size, bool align_corners,
                  MaybeScales scale_factors) {
      const Target to = target("upsample_linear1d", input, output_size, scale_factors, 1);
      return op_upsample_linear1d(input, to.sizes, align_corners, to.scales[0]);
    });

LS_OP(upsample_nearest3d, Tensor(const Tensor&, IntList, Number, Number, Number),
      "upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
      "scales_h=None, float? scales_w=None) -> Tensor")
    .doc("Volumes resampled to the nearest element.")
    .autocast(Autocast::kF32)
    .composite(nearest_volumes);
Tensor upsample_nearest3d(const Tensor& self, IntList output_size, Number scales_d, Number scales_h,
                          Number scales_w) {
  return op_upsample_nearest3d(self, output_size, scales_d, scales_h, scales_w);
}
LS_OP(upsample_nearest3d_out,
      const Tensor&(const Tensor&, IntList, Number, Number, Number, const Tensor&),
      "upsample_nearest3d.out(Tensor self, SymInt[3] output_size, float? scales_d=None, "
      "float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("upsample_nearest3d, written into out.")
    .composite([](const Tensor& self, IntList output_size, Number scales_d, Number scales_h,
                  Number scales_w, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_upsample_nearest3d(self, output_size, scales_d, scales_h, scales_w));
    });
LS_OP(upsample_nearest3d_vec, Tensor(const Tensor&, MaybeSizes, MaybeScales),
      "upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> "
      "Tensor")
    .doc("upsample_nearest3d to a size or by factors.")
    .composite([](const Tensor& input, MaybeSizes output_size, MaybeScales scale_factors) {
      const Target to = target("upsample_nearest3d", input, output_size, scale_factors, 3);
      return op_upsample_nearest3d(input, to.sizes, to.scales[0], to.scales[1], to.scales[2]);
    });

LS_OP(upsample_trilinear3d, Tensor(const Tensor&, IntList, bool, Number, Number, Number),
      "upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? "
      "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
    .doc("Volumes resampled by linear interpolation along each dimension.")
    .autocast(Autocast::kF32)
    .composite(linear_volumes);
Tensor upsample_trilinear3d(const Tensor& self, IntList output_size, bool align_corners,
                            Number scales_d, Number scales_h, Number scales_w) {
  return op_upsample_trilinear3d(self, output_size, align_corners, scales_d, scales_h, scales_w);
}
LS_OP(upsample_trilinear3d_out,
      const Tensor&(const Tensor&, IntList, bool, Number, Number, Number, const Tensor&),
      "upsample_trilinear3d.out(Tensor self, SymInt[3] output_size, bool align_corners, "
      "float? scales_d=None, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) "
      "-> Tensor(a!)")
    .doc("upsample_trilinear3d, written into out.")
    .composite([](const Tensor& self, IntList output_size, bool align_corners, Number scales_d,
                  Number scales_h, Number scales_w, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_upsample_trilinear3d(self, output_size, align_corners, scales_d,
                                                    scales_h, scales_w));
    });
LS_OP(upsample_trilinear3d_vec, Tensor(const Tensor&, MaybeSizes, bool, MaybeScales),
      "upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
      "scale_factors) -> Tensor")
    .doc("upsample_trilinear3d to a size or by factors.")
    .composite([](const Tensor& input, MaybeSizes output_size, bool align_corners,
                  MaybeScales scale_factors) {
      const Target to = target("upsample_trilinear3d", input, output_size, scale_factors, 3);
      return op_upsample_trilinear3d(input, to.sizes, align_corners, to.scales[0], to.scales[1],
                                     to.scales[2]);
    });

}  // namespace lockstep
