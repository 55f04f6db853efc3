#pragma once

#include "kernels/cuda/cutter.h"
#include "kernels/cuda/numbers.h"

namespace lockstep::cuda {

/// Numbers of places of a tensor [outer, inner...] of up to three inner dimensions, and what a
/// place adds to coordinates in another tensor: place * scale + shift along each dimension.
struct ConvPlaces {
  Cutter outer;          ///< cuts numbers into inner places
  Cutter plane, line;    ///< of an inner place
  int64_t outer_stride;  ///< in the tensor that the coordinates are of
  int32_t scale[3], shift[3];
};

/// Every result of a convolution is, for each group, a product of matrices whose right one is read
/// from a tensor of images as it is needed:
///   out[row, column] = bias[row] + sum over depth of left[row, depth] right[depth, column],
///   left[row, depth] = left[row left_row + outer(depth) left_outer + inner(depth)],
///   right[depth, column] = the images at the sum of the coordinates that `depths` and `columns`
///     give, divided by `divisor`; 0 outside, and where that leaves a remainder.
///
///   result   rows      columns              depth                   images
///   map      features  samples x map        channels x kernel       image
///   image    channels  samples x image      features x kernel       map, divided by the stride
///   weight   features  channels x kernel    samples x map           image
struct Conv {
  /// Rows and columns of a block.
  static constexpr int kTile = 64, kLargeTile = 128;
  /// Up to so many rows of a group are computed without tiles: those of depthwise convolutions.
  static constexpr int kFewRows = 4;

  const void* left;
  const void* right;
  void* out;
  const void* bias;  ///< of each row of each group; null for none
  DType dtype;       ///< of all, for kernels that look it up
  int64_t rows, columns, depth;
  int64_t left_row, left_outer;
  int64_t out_row, out_outer;  ///< out: row out_row + outer(column) out_outer + inner(column)
  int64_t left_group, right_group, out_group;  ///< from one group to the next
  int64_t groups;
  ConvPlaces columns_at, depths_at;
  int32_t size[3];     ///< of an image
  int32_t divisor[3];  ///< all 1, or the stride
  Cutter out_outers;   ///< cuts columns of the result
  /// The depth is cut into parts of `part`, whose sums are joined by conv_join; one part is written
  /// to `out` at once.
  int64_t part, parts;
  void* part_sums;
  int64_t out_count;  ///< elements of the result
};

/// The tile of a product: large where that leaves work for every part of a GPU.
constexpr int conv_tile(int64_t rows, int64_t columns, int64_t groups) {
  constexpr int64_t kLarge = Conv::kLargeTile, kEnough = 132 * 2;
  const int64_t tiles = ((rows + kLarge - 1) / kLarge) * ((columns + kLarge - 1) / kLarge) * groups;
  return rows > Conv::kTile && columns > Conv::kTile && tiles >= kEnough ? Conv::kLargeTile
                                                                         : Conv::kTile;
}

/// A bias added to what another library convolved: out[sample, channel, place] += bias[channel].
struct ConvAddBias {
  void* out;
  const void* bias;
  Cutter places, channels;
  int64_t count;
};

/// Queues it. Both are of one dtype: f32, bf16 or f16.
void add_bias(void* out, const void* bias, DType dtype, int64_t batch, int64_t channels,
              int64_t places);

/// The gradient of a bias: sums of [batch, features, places] for parts of each feature's elements.
struct ConvBias {
  const void* grad;
  Numbers out;
  int64_t features, per_feature;
  Cutter places;
  int64_t part, parts;
  double* part_sums;
};

}  // namespace lockstep::cuda
