#pragma once

#include "kernels/common/grid_taps.h"
#include "kernels/cuda/cutter.h"

namespace lockstep::cuda {

/// A call of the grid sampler, either direction: images [n, channels, height, width], points [n,
/// points, 2] between their pixels, results [n, channels, points]; contiguous.
struct GridSampler {
  const void* input;
  const void* grid;
  const void* grad_out;  ///< backward
  void* result;          ///< out, grad_input or grad_grid
  int64_t images, channels, height, width, points;
  GridInterpolation mode;
  GridOutside outside;
  bool align_corners;
  Cutter point;  ///< cuts all points into those of an image

  // grad_input: pixels are read by taps * taps reads of each point, which are grouped by
  // their pixel, counted over all images.
  int64_t taps;  ///< of a point along one dimension
  int64_t reads;
  uint32_t* pixels;  ///< of each read
  void* weights;     ///< of each read
  const uint32_t* sorted_pixels;
  const uint32_t* sorted_reads;
  int64_t* first_of;  ///< of each pixel among the sorted, and one behind the last
  Cutter plane;       ///< cuts elements of grad_input into planes
  Cutter read;        ///< cuts reads into those of a point
};

}  // namespace lockstep::cuda
