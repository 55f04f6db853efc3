#include "core/ops/image/grid_sampler.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_division.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/view/shape.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
namespace {

void check_sampler(std::string_view op, const Tensor& input, const Tensor& grid, int64_t mode,
                   int64_t padding) {
  LS_CHECK(input.dim() == 4 && grid.dim() == 4, ShapeError,
           "[{}] expected images [N, C, H, W] and a grid [N, H', W', 2], got shapes {} and {}.", op,
           input.shape(), grid.shape());
  LS_CHECK(input.size(0) == grid.size(0) && grid.size(3) == 2, ShapeError,
           "[{}] expected a grid of shape [{}, H', W', 2] for images {}, got {}.", op,
           input.size(0), input.shape(), grid.shape());
  LS_CHECK(input.size(2) > 0 && input.size(3) > 0, ShapeError,
           "[{}] the images have no pixels: got shape {}.", op, input.shape());
  LS_CHECK(is_floating(input.dtype()) && input.dtype() == grid.dtype(), DTypeError,
           "[{}] expected images and grid of one floating dtype, got {} and {}.", op,
           to_string(input.dtype()), to_string(grid.dtype()));
  LS_CHECK(mode >= 0 && mode <= 2, Error,
           "[{}] interpolation_mode is 0 bilinear, 1 nearest or 2 bicubic, got {}.", op, mode);
  LS_CHECK(padding >= 0 && padding <= 2, Error,
           "[{}] padding_mode is 0 zeros, 1 border or 2 reflection, got {}.", op, padding);
}

Outputs grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                        int64_t padding_mode, bool) {
  check_sampler("grid_sampler_2d", input, grid, interpolation_mode, padding_mode);
  return one({input.size(0), input.size(1), grid.size(1), grid.size(2)}, input.dtype());
}

Outputs grid_sampler_2d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                 int64_t interpolation_mode, int64_t padding_mode, bool,
                                 BoolList output_mask) {
  check_sampler("grid_sampler_2d_backward", input, grid, interpolation_mode, padding_mode);
  const Dims sizes{input.size(0), input.size(1), grid.size(1), grid.size(2)};
  LS_CHECK(same(grad_output.sizes(), sizes) && grad_output.dtype() == input.dtype(), ShapeError,
           "[grid_sampler_2d_backward] the gradient does not fit: expected {}{}, got {}.",
           to_string(input.dtype()), to_string(sizes), to_string(grad_output));
  LS_CHECK(output_mask.size() == 2, ShapeError,
           "[grid_sampler_2d_backward] expected two flags in output_mask, got {}.",
           output_mask.size());
  Outputs outputs = one(to_dims(input.sizes()), input.dtype());
  outputs.specs[0].present = output_mask[0];
  OutputSpec& of_grid = outputs.specs.emplace_back();
  of_grid.sizes = to_dims(grid.sizes());
  of_grid.dtype = grid.dtype();
  of_grid.present = output_mask[1];
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

enum Interpolation : int64_t { kBilinear, kNearest, kBicubic };
enum Outside : int64_t { kZeros, kBorder, kReflection };

/// The pixels that points read along one dimension; all tensors are [N, points].
struct Taps {
  struct Tap {
    Tensor place;    ///< int64 index of the pixel, 0 where it is outside
    Tensor outside;  ///< bool
    Tensor weight;
    Tensor slope;  ///< derivative of the weight with respect to the grid's coordinate
  };
  std::vector<Tap> taps;

  void add(const Tensor& place, int64_t size, Tensor weight, Tensor slope) {
    const Tensor outside = logical_or(lt(place, 0), ge(place, size));
    taps.push_back({masked_fill(place, outside, 0).to(DType::kI64), outside, std::move(weight),
                    std::move(slope)});
  }
};

/// Maps grid coordinates of one dimension to pixels and weights, as kernels/cpu does. Composed of
/// operators, so that the result can be differentiated again.
struct Coordinates {
  int64_t size;
  int64_t mode;
  int64_t padding;
  bool align_corners;

  double extent() const { return static_cast<double>(align_corners ? size - 1 : size); }
  Tensor unnormalized(const Tensor& x) const {
    return ((x + 1) * extent() - (align_corners ? 0 : 1)) / 2;
  }
  /// Replaces coordinates that do not fit an integer, and NaN, by one outside the image (-100).
  static Tensor representable(const Tensor& x) {
    return masked_fill(x, logical_not(lt(abs(x), 1 << 30)), -100);
  }
  /// Applies the padding mode: returns the coordinates inside the image and the factor by which
  /// that changes their derivative.
  std::pair<Tensor, Tensor> inside(Tensor x) const {
    const ExcludeKeys not_recorded{KeySet(Key::kAutograd)};
    Tensor factor = ones_like(x);
    if (padding == kZeros) return {representable(x), factor};
    if (padding == kReflection) {
      const double low = align_corners ? 0 : -0.5;
      const double span = static_cast<double>(align_corners ? size - 1 : size);
      if (span == 0) return {zeros_like(x), zeros_like(x)};
      const Tensor distance = abs(x - low);
      const Tensor turns = floor(distance / span);
      const Tensor odd = ne(remainder(turns, 2), 0);
      const Tensor rest = distance - turns * span;
      factor = where(logical_xor(odd, lt(x, low)), -factor, factor);
      x = where(odd, span - rest, rest) + low;
    }
    const Tensor below = logical_not(gt(x, 0));
    const Tensor above = ge(x, size - 1);
    factor = masked_fill(factor, logical_or(below, above), 0);
    return {representable(masked_fill(masked_fill(x, above, size - 1), below, 0)), factor};
  }

  Taps taps_of(const Tensor& grid_coordinates) const {
    const Tensor raw = unnormalized(grid_coordinates);
    if (mode == kBicubic) return cubic_taps(raw);
    const auto [value, factor] = inside(raw);
    Taps taps;
    if (mode == kNearest) {
      taps.add(round(value), size, ones_like(value), zeros_like(value));
      return taps;
    }
    const Tensor low = floor(value);
    // Equals value - low, with a gradient that reaches the grid.
    const Tensor t = value - low + factor * (raw - raw.detach());
    const Tensor slope = factor * (extent() / 2);
    taps.add(low, size, 1 - t, -slope);
    taps.add(low + 1, size, t, slope);
    return taps;
  }

  /// Keys' cubic convolution, a = -0.75. The padding mode applies to each neighbour, not to the
  /// point.
  Taps cubic_taps(const Tensor& raw) const {
    constexpr double a = -0.75;
    const Tensor value = representable(raw.detach());
    const Tensor low = floor(value);
    const Tensor t = value - low + (raw - raw.detach());
    Taps taps;
    for (int i = 0; i < 4; ++i) {
      const double side = i < 2 ? 1 : -1;
      const Tensor x = (t - (i - 1)) * side;
      const bool near = i == 1 || i == 2;
      const Tensor weight =
          near ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
      const Tensor slope =
          near ? (3 * (a + 2) * x - 2 * (a + 3)) * x : (3 * a * x - 10 * a) * x + 8 * a;
      taps.add(inside(low + (i - 1)).first, size, weight, slope * (side * extent() / 2));
    }
    return taps;
  }
};

/// grid_sampler_2d_backward composed of differentiable operators.
Gradients simple_gradients(VjpContext& ctx, const Tensor& grad_output) {
  const DType compute = promote(ctx.input(0).dtype, DType::kF32);
  const Tensor input = ctx.saved(0).to(compute).flatten(2);
  const Tensor grid = ctx.saved(1).to(compute);
  const Tensor grad = grad_output.to(compute).flatten(2);
  const int64_t height = ctx.sizes(0)[2], width = ctx.sizes(0)[3];
  const auto coordinates = [&](int64_t size, int64_t column) {
    const Coordinates along{size, ctx.argument<int64_t>(2), ctx.argument<int64_t>(3),
                            ctx.argument<bool>(4)};
    return along.taps_of(grid.select(3, column).flatten(1)).taps;
  };
  Tensor of_input = zeros_like(input);
  Tensor of_x, of_y;
  const std::vector<Taps::Tap> along_x = coordinates(width, 0);
  for (const Taps::Tap& y : coordinates(height, 1)) {
    for (const Taps::Tap& x : along_x) {
      const Tensor outside = logical_or(y.outside, x.outside);
      const Tensor pixel = (y.place * width + x.place).unsqueeze(1).expand(grad.sizes());
      if (ctx.needs(0)) {
        const Tensor part = grad * (y.weight * x.weight).unsqueeze(1);
        of_input = scatter_add(of_input, 2, pixel, masked_fill(part, outside.unsqueeze(1), 0));
      }
      if (!ctx.needs(1)) continue;
      const Tensor value = masked_fill((grad * gather(input, 2, pixel)).sum({1}), outside, 0);
      const Tensor part_x = y.weight * x.slope * value;
      const Tensor part_y = y.slope * x.weight * value;
      of_x = of_x.defined() ? of_x + part_x : part_x;
      of_y = of_y.defined() ? of_y + part_y : part_y;
    }
  }
  return ctx.gradients([&] { return of_input.reshape(ctx.sizes(0)).to(ctx.input(0).dtype); },
                       [&] {
                         return stack({of_x, of_y}, 2).reshape(ctx.sizes(1)).to(ctx.input(1).dtype);
                       });
}

}  // namespace

LS_OP(grid_sampler_2d, Tensor(const Tensor&, const Tensor&, int64_t, int64_t, bool),
      "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
      "align_corners) -> Tensor")
    .doc("Samples images at the points of a grid.")
    .structured(rules::grid_sampler_2d)
    .batching(batching::images_2d)
    .out()
    .autocast(Autocast::kPromote)
    .saves({"input", "grid"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const bool recorded = !detail::thread_keys.excluded.has(Key::kAutograd);
      if (recorded) return simple_gradients(ctx, grad);
      const auto [input, grid] = grid_sampler_2d_backward(
          grad, ctx.saved(0), ctx.saved(1), ctx.argument<int64_t>(2), ctx.argument<int64_t>(3),
          ctx.argument<bool>(4), {ctx.needs(0), ctx.needs(1)});
      return Gradients{input, grid};
    });
Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                       int64_t padding_mode, bool align_corners) {
  return op_grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners);
}

using TwoTensors = std::tuple<Tensor, Tensor>;
LS_OP(grid_sampler_2d_backward,
      TwoTensors(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, bool, BoolList),
      "grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int "
      "interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, "
      "Tensor)")
    .doc("The derivatives of grid_sampler_2d.")
    .structured(rules::grid_sampler_2d_backward)
    .not_differentiable(
        "a derivative that is to be differentiated again is made of simple operators instead");
std::tuple<Tensor, Tensor> grid_sampler_2d_backward(const Tensor& grad_output, const Tensor& input,
                                                    const Tensor& grid, int64_t interpolation_mode,
                                                    int64_t padding_mode, bool align_corners,
                                                    BoolList output_mask) {
  return op_grid_sampler_2d_backward(grad_output, input, grid, interpolation_mode, padding_mode,
                                     align_corners, output_mask);
}

LS_OP(grid_sampler_2d_backward_out,
      TwoTensors(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, bool, BoolList,
                 const Tensor&, const Tensor&),
      "grid_sampler_2d_backward.out(Tensor grad_output, Tensor input, Tensor grid, int "
      "interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask, *, "
      "Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))")
    .doc("grid_sampler_2d_backward, written into out0 and out1 where output_mask selects them.")
    .composite([](const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                  int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                  BoolList output_mask, const Tensor& out0, const Tensor& out1) {
      const auto [of_input, of_grid] = grid_sampler_2d_backward(
          grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask);
      return TwoTensors(of_input.defined() ? clone_out(out0, of_input) : out0,
                        of_grid.defined() ? clone_out(out1, of_grid) : out1);
    });

}  // namespace lockstep
