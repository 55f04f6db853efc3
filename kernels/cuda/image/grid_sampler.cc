#include "kernels/cuda/image/grid_sampler.h"

#include "core/dispatch/kernel.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/image/grid_sampler.fatbin.h"
#include "kernels/cuda/index/grouping.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

const DTypeKernels kSample(kImage, "grid_sampler");
const DTypeKernels kReads(kImage, "grid_sampler_reads");
const DTypeKernels kInput(kImage, "grid_sampler_input");
const DTypeKernels kGrid(kImage, "grid_sampler_grid");
const Kernel kFirsts(kImage, "grid_sampler_firsts");

GridSampler params_of(const In& input, const In& grid, int64_t interpolation_mode,
                      int64_t padding_mode, bool align_corners) {
  GridSampler p{};
  p.input = input.address;
  p.grid = grid.address;
  p.images = input.size(0);
  p.channels = input.size(1);
  p.height = input.size(2);
  p.width = input.size(3);
  p.points = grid.size(1) * grid.size(2);
  p.mode = static_cast<GridInterpolation>(interpolation_mode);
  p.outside = static_cast<GridOutside>(padding_mode);
  p.align_corners = align_corners;
  p.point = IndexSplitter(p.points, p.images * p.points);
  return p;
}

void run(Kernel kernel, int64_t work, const GridSampler& p) {
  launch(kernel, {.blocks = {blocks_for(work, 256), 1, 1}, .threads = 256, .shared_bytes = 0}, p);
}

void grid_sampler_2d(const Out& out, const In& input, const In& grid, int64_t interpolation_mode,
                     int64_t padding_mode, bool align_corners) {
  if (out.numel == 0) return;
  GridSampler p = params_of(input, grid, interpolation_mode, padding_mode, align_corners);
  p.result = out.address;
  run(kSample[out.dtype], p.images * p.points, p);
}

/// Sorts the reads by pixel, so that one thread sums all reads of a pixel in a fixed order.
void input_gradient(const Out& out, GridSampler p) {
  p.taps = p.mode == GridInterpolation::kBicubic    ? 4
           : p.mode == GridInterpolation::kBilinear ? 2
                                                    : 1;
  p.reads = p.taps * p.taps;
  const int64_t points = p.images * p.points, pixels = p.images * p.height * p.width;
  if (points == 0) return fill_elements(out, 0);
  Grouping grouping("grid_sampler_2d_backward", points * p.reads, pixels);
  const Workspace weights(static_cast<size_t>(grouping.count()) *
                          (out.dtype == DType::kF64 ? sizeof(double) : sizeof(float)));
  const Workspace first_of(static_cast<size_t>(pixels + 1) * sizeof(int64_t));
  p.result = out.address;
  p.pixels = grouping.places();
  p.weights = weights.data();
  p.first_of = first_of.data<int64_t>();
  p.plane = IndexSplitter(p.height * p.width, out.numel);
  p.read = IndexSplitter(p.reads, grouping.count());
  run(kReads[out.dtype], points, p);
  grouping.sort();
  p.sorted_pixels = grouping.sorted_places();
  p.sorted_reads = grouping.sorted_positions();
  run(kFirsts, pixels + 1, p);
  run(kInput[out.dtype], out.numel, p);
}

void grid_sampler_2d_backward(const Out& grad_input, const Out& grad_grid, const In& grad,
                              const In& input, const In& grid, int64_t interpolation_mode,
                              int64_t padding_mode, bool align_corners, BoolList) {
  GridSampler p = params_of(input, grid, interpolation_mode, padding_mode, align_corners);
  p.grad_out = grad.address;
  if (grad_input.defined() && grad_input.numel > 0) input_gradient(grad_input, p);
  if (grad_grid.defined() && grad_grid.numel > 0) {
    p.result = grad_grid.address;
    run(kGrid[grad_grid.dtype], p.images * p.points, p);
  }
}

}  // namespace

LS_KERNEL(CUDA, "grid_sampler_2d", grid_sampler_2d, Strides::kContiguous);
LS_KERNEL(CUDA, "grid_sampler_2d_backward", grid_sampler_2d_backward, Strides::kContiguous);

}  // namespace lockstep::cuda
