#pragma once

#include "kernels/common/pad_border.h"
#include "kernels/common/resample_taps.h"
#include "kernels/cuda/cutter.h"

namespace lockstep::cuda {

/// A call of an upsampling operator, either direction, over contiguous planes of rows and columns.
/// Kernels first find what every row and column reads, and by what it is read.
struct Upsample {
  ResampleAxis axes[2];
  ResampleTaps* taps[2];   ///< for each row, and for each column, of the result
  PlaceRange* readers[2];  ///< backward: for those of the input, the result's that may read them
  const void* from;
  void* to;
  int64_t numel;       ///< of `to`
  Cutter plane, line;  ///< cut elements of `to` into planes, and places of a plane into rows
};

/// One dimension of bytes, [outer, size, inner], is resampled by taps whose weights are integers,
/// `shift` binary places up.
struct UpsampleBytes {
  const ResampleTaps* taps;
  const int32_t* shift;
  const uint8_t* from;
  uint8_t* to;
  int64_t numel, from_size;
  Cutter outer, inner;
};

/// The taps of bytes, of both axes.
struct UpsampleByteTaps {
  ResampleAxis axes[2];
  ResampleTaps* taps[2];
  int32_t* shifts;
};

}  // namespace lockstep::cuda
