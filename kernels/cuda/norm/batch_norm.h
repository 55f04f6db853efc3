#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/index_splitter.h"
#include "kernels/cuda/numbers.h"

namespace lockstep::cuda {

/// Arguments of a batch norm, forward or backward, over [batch, channels, places], row-major or
/// channels-last. Statistics and sums are f64: computed for parts of each channel, which are merged
/// in order.
struct BatchNorm {
  /// Channels-last: adjacent channels summed by one block, each by the threads of one column.
  static constexpr int kColumns = 32;
  /// Number of per-channel factors that the element-wise kernels read.
  static constexpr int kFactors = 4;

  const void* input;
  const void* grad_out;  ///< backward
  void* result;          ///< out, or grad_input
  int64_t channels, per_channel, numel;
  bool channels_last;
  IndexSplitter places;         ///< places per sample of a channel; 1 for channels-last
  IndexSplitter channel_split;  ///< splits rows of places into samples
  int64_t part;                 ///< elements per part of a channel
  int64_t parts;                ///< parts per channel
  double* part_sums;            ///< two per part and channel
  double* factors;              ///< kFactors per channel
  Numbers weight, bias;
  Numbers old_mean, old_var;     ///< running statistics
  Numbers new_mean, new_var;     ///< updated running statistics
  Numbers save_mean, save_root;  ///< forward: written; backward: read
  Numbers grad_weight, grad_bias;
  double momentum, eps;
  bool train;   ///< use the batch's statistics instead of the running ones
  bool packed;  ///< 16 bytes at a time: aligned, and within one channel or one place
};

/// Elements per part: enough parts to fill any GPU (four blocks per SM of a GPU with 132), but not
/// too small. Depends on the shape alone.
constexpr int64_t batch_norm_part(int64_t channels, int64_t per_channel,
                                  bool channels_last = false) {
  constexpr int64_t kLeast = 4096, kBlocks = 132 * 4;
  const int64_t columns = channels_last ? BatchNorm::kColumns : 1;
  const int64_t across = (channels + columns - 1) / columns;
  const int64_t wanted = std::max<int64_t>(1, kBlocks / std::max<int64_t>(across, 1));
  return std::max<int64_t>(kLeast / columns, (per_channel + wanted - 1) / wanted);
}

}  // namespace lockstep::cuda
