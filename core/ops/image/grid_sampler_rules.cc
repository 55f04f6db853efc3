#include "core/ops/image/grid_sampler_rules.h"

#include "core/base/check.h"

namespace lockstep::rules {

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

}  // namespace

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

}  // namespace lockstep::rules
