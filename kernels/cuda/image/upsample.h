#pragma once

#include "kernels/common/pad_border.h"
#include "kernels/common/resample_taps.h"
#include "kernels/cuda/index_splitter.h"

namespace lockstep::cuda {

/// Arguments of an upsampling operator, forward or backward, over contiguous planes of rows and
/// columns. Its kernels first compute the taps of every row and column, and which results read
/// them.
struct Upsample {
  ResampleAxis axes[2];
  ResampleTaps* taps[2];   ///< taps of each row and of each column of the result
  PlaceRange* readers[2];  ///< backward: results that may read each input row and column
  const void* from;
  void* to;
  int64_t numel;              ///< elements of `to`
  IndexSplitter plane, line;  ///< split indices of `to` into planes, and positions into rows
};

/// Resamples one dimension of a uint8 tensor [outer, size, inner] with fixed-point weights that
/// have `shift` fractional bits.
struct UpsampleBytes {
  const ResampleTaps* taps;
  const int32_t* shift;
  const uint8_t* from;
  uint8_t* to;
  int64_t numel, from_size;
  IndexSplitter outer, inner;
};

/// Computes the fixed-point taps of both axes.
struct UpsampleByteTaps {
  ResampleAxis axes[2];
  ResampleTaps* taps[2];
  int32_t* shifts;
};

}  // namespace lockstep::cuda
