#pragma once

#include "kernels/cuda/index_splitter.h"
#include "kernels/cuda/numbers.h"

namespace lockstep::cuda {

/// Decomposes linear indices of a tensor [outer, inner...] with up to three inner dimensions, and
/// gives their contribution to the coordinates in another tensor: inner index * scale + shift along
/// each dimension.
struct ConvPlaces {
  IndexSplitter outer;        ///< splits an index into outer and inner
  IndexSplitter plane, line;  ///< split the inner index into three coordinates
  int64_t outer_stride;       ///< stride of `outer` in the other tensor
  int32_t scale[3], shift[3];
};

/// Every convolution result is, per group, a matrix product whose right factor is gathered from a
/// tensor of images (implicit GEMM):
///   out[row, column] = bias[row] + sum over depth of left[row, depth] right[depth, column],
///   left[row, depth] = left[row left_row + outer(depth) left_outer + inner(depth)],
///   right[depth, column] = the image element at the sum of the coordinates that `depths_at` and
///     `columns_at` give, divided by `divisor`; 0 outside the image or if the division leaves a
///     remainder.
///
///   result   rows      columns              depth                   images
///   map      features  samples x map        channels x kernel       image
///   image    channels  samples x image      features x kernel       map, divided by the stride
///   weight   features  channels x kernel    samples x map           image
struct Conv {
  /// Rows and columns of results computed by one block.
  static constexpr int kTile = 64, kLargeTile = 128;
  /// Groups of at most so many rows, as in depthwise convolutions, are computed without tiles.
  static constexpr int kFewRows = 4;

  const void* left;
  const void* right;
  void* out;
  const void* bias;  ///< one per row of each group; null for none
  DType dtype;       ///< dtype of all tensors, for kernels that dispatch on it at run time
  int64_t rows, columns, depth;
  int64_t left_row, left_outer;
  int64_t out_row, out_outer;  ///< out: row out_row + outer(column) out_outer + inner(column)
  int64_t left_group, right_group, out_group;  ///< strides from one group to the next
  int64_t groups;
  ConvPlaces columns_at, depths_at;
  int32_t size[3];           ///< sizes of an image
  int32_t divisor[3];        ///< the stride for image results, else 1
  IndexSplitter out_outers;  ///< splits result columns into outer and inner
  /// The depth is split into `parts` parts of length `part`, whose sums conv_join adds. A single
  /// part is written to `out` directly.
  int64_t part, parts;
  void* part_sums;
  int64_t out_count;  ///< number of result elements
};

/// Tile size of a product: large if that still gives two blocks to each of 132 SMs.
constexpr int conv_tile(int64_t rows, int64_t columns, int64_t groups) {
  constexpr int64_t kLarge = Conv::kLargeTile, kEnough = 132 * 2;
  const int64_t tiles = ((rows + kLarge - 1) / kLarge) * ((columns + kLarge - 1) / kLarge) * groups;
  return rows > Conv::kTile && columns > Conv::kTile && tiles >= kEnough ? Conv::kLargeTile
                                                                         : Conv::kTile;
}

/// Adds a bias to the result of another library: out[sample, channel, place] += bias[channel].
struct ConvAddBias {
  void* out;
  const void* bias;
  IndexSplitter places, channels;
  int64_t count;
};

/// Queues ConvAddBias. `out` and `bias` have one dtype: f32, bf16 or f16.
void add_bias(void* out, const void* bias, DType dtype, int64_t batch, int64_t channels,
              int64_t places);

/// Gradient of a bias: sums of [batch, features, places] over parts of each feature's elements.
struct ConvBias {
  const void* grad;
  Numbers out;
  int64_t features, per_feature;
  IndexSplitter places;
  int64_t part, parts;
  double* part_sums;
};

}  // namespace lockstep::cuda
