#pragma once

#include "kernels/common/grid_taps.h"
#include "kernels/cuda/index_splitter.h"

namespace lockstep::cuda {

/// Arguments of the grid sampler, forward or backward: images [n, channels, height, width], points
/// [n, points, 2], results [n, channels, points]; all contiguous.
struct GridSampler {
  const void* input;
  const void* grid;
  const void* grad_out;  ///< backward
  void* result;          ///< out, grad_input or grad_grid
  int64_t images, channels, height, width, points;
  GridInterpolation mode;
  GridOutside outside;
  bool align_corners;
  IndexSplitter point;  ///< splits point indices into image and point

  // grad_input only: each point reads taps * taps pixels. The reads are sorted by pixel, which is
  // numbered across all images.
  int64_t taps;  ///< taps of a point along one dimension
  int64_t reads;
  uint32_t* pixels;  ///< pixel of each read
  void* weights;     ///< weight of each read
  const uint32_t* sorted_pixels;
  const uint32_t* sorted_reads;
  int64_t* first_of;    ///< first sorted read of each pixel, and the end
  IndexSplitter plane;  ///< splits indices of grad_input into planes
  IndexSplitter read;   ///< splits read indices into points
};

}  // namespace lockstep::cuda
