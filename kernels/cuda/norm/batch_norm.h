#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/cutter.h"
#include "kernels/cuda/numbers.h"

namespace lockstep::cuda {

/// A call of a batch norm, either direction, over [batch, channels, places], row-major or with the
/// channels innermost. Statistics and sums are f64: found for parts of each channel, which are
/// joined in order.
struct BatchNorm {
  /// Channels side by side that a block adds up together, a thread for each in its rows of places.
  static constexpr int kColumns = 32;
  /// For each channel, what its elements are computed with.
  static constexpr int kFactors = 4;

  const void* input;
  const void* grad_out;  ///< backward
  void* result;          ///< out, or grad_input
  int64_t channels, per_channel, numel;
  bool channels_last;
  Cutter
      places;  ///< of an element of a channel, and of the tensor; one where channels are innermost
  Cutter channel_cut;  ///< cuts rows of places into samples
  int64_t part;        ///< elements of a part of a channel
  int64_t parts;       ///< of each channel
  double* part_sums;   ///< two for each part of each channel
  double* factors;     ///< kFactors for each channel
  Numbers weight, bias;
  Numbers old_mean, old_var;     ///< running ones
  Numbers new_mean, new_var;     ///< running ones, moved
  Numbers save_mean, save_root;  ///< forward: written; backward: read
  Numbers grad_weight, grad_bias;
  double momentum, eps;
  bool train;   ///< by the batch's statistics, not by the running ones
  bool packed;  ///< 16 bytes at a time: they lie in one channel, or one place, and are aligned
};

/// Elements of a part: by shape alone, so many parts that any GPU is busy, none too small.
constexpr int64_t batch_norm_part(int64_t channels, int64_t per_channel,
                                  bool channels_last = false) {
  constexpr int64_t kLeast = 4096, kBlocks = 132 * 4;
  const int64_t columns = channels_last ? BatchNorm::kColumns : 1;
  const int64_t across = (channels + columns - 1) / columns;
  const int64_t wanted = std::max<int64_t>(1, kBlocks / std::max<int64_t>(across, 1));
  return std::max<int64_t>(kLeast / columns, (per_channel + wanted - 1) / wanted);
}

}  // namespace lockstep::cuda
