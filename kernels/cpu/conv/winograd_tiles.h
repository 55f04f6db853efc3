#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/common/conv_problem.h"
#include "kernels/cpu/arithmetic.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/workspace.h"

// Tiles of Winograd's F(2 x 2, 3 x 3), in the names of Lavin and Gray: an image's tile d of 4 x 4
// becomes B' d B, a kernel g becomes G g G', and a map's tile of 2 x 2 is A' [G g G' * B' d B] A,
// with
//
//        1  0 -1  0           1    0    0
//   B' = 0  1  1  0      G = 1/2  1/2  1/2      A' = 1  1  1  0
//        0 -1  1  0          1/2 -1/2  1/2           0  1 -1 -1
//        0  1  0 -1           0    0    1

namespace lockstep::cpu::winograd {

inline constexpr int64_t kPlaces = 16;  ///< elements of a transformed tile

/// The transformed tiles of some images: number `place` of tile t and channel c is
/// numbers[place * stride + t * channels + c].
struct Tiles {
  float* numbers;
  int64_t stride;
  int64_t channels;

  float* at(int64_t tile) const { return numbers + tile * channels; }
  /// Floats that `tiles` tiles take. Strides that are powers of two would meet in a few cache
  /// lines.
  static int64_t stride_of(int64_t tiles, int64_t channels) { return tiles * channels + 16; }
  static int64_t room_of(int64_t tiles, int64_t channels) {
    return kPlaces * stride_of(tiles, channels);
  }
};

/// One of a convolution's two stacks of images, row-major [batch, channels, height, width].
struct Images {
  void* address;
  int64_t element;  ///< bytes: of f32, or of bf16 that are read
  int64_t channels;
  int64_t height;
  int64_t width;

  bool is_narrow() const { return element != static_cast<int64_t>(sizeof(float)); }
  char* row(int64_t image, int64_t channel, int64_t y) const {
    return static_cast<char*>(address) +
           ((image * channels + channel) * height + y) * width * element;
  }
};
inline Images image_of(const ConvProblem& p, const ConvTensors& t) {
  const auto element = static_cast<int64_t>(size_of(p.dtype));
  return {t.image, element, p.channels, p.image[0], p.image[1]};
}
inline Images map_of(const ConvProblem& p, const ConvTensors& t) {
  const auto element = static_cast<int64_t>(size_of(p.dtype));
  return {t.map, element, p.features, p.map[0], p.map[1]};
}

/// The tiles of all maps of a batch, in rows: those of the first image from top to bottom, and so
/// on.
struct Grid {
  int64_t rows_of_map;
  int64_t columns;
  int64_t rows;  ///< of the batch

  Grid(const Images& maps, int64_t batch)
      : rows_of_map((maps.height + 1) / 2),
        columns((maps.width + 1) / 2),
        rows(batch * rows_of_map) {}

  /// Calls visit(image, first, last, tile) for each image of which rows [first_row, last_row) of
  /// the grid hold tiles: its rows [first, last), whose tiles begin at number `tile`.
  template <class Visit>
  void for_each_image(int64_t first_row, int64_t last_row, const Visit& visit) const {
    for (int64_t row = first_row; row < last_row;) {
      const int64_t image = row / rows_of_map;
      const int64_t end = std::min(last_row, (image + 1) * rows_of_map);
      visit(image, row - image * rows_of_map, end - image * rows_of_map,
            (row - first_row) * columns);
      row = end;
    }
  }
};

/// Rows of one image with its channels side by side: pixel (y, x) begins at
/// pixels + ((y - first_row) * width + x) * channels. Pixels outside of the image are zeros.
class Pixels {
 public:
  /// Floats of room that `rows` rows of an image take.
  static int64_t room_of(const Images& images, int64_t rows) {
    const int64_t numbers = std::min(rows, images.height) * images.width * images.channels;
    return images.channels + numbers + (images.is_narrow() ? (numbers + 1) / 2 : 0);
  }
  Pixels(const Images& images, int64_t image, int64_t first_row, int64_t last_row, float* room)
      : images_(images), first_row_(std::max<int64_t>(0, first_row)), zeros_(room) {
    std::fill_n(room, images.channels, 0.0F);
    pixels_ = room + images.channels;
    const int64_t count = (std::min(images.height, last_row) - first_row_) * images.width;
    if (count <= 0) return;
    const int64_t numbers = count * images.channels;
    auto* const read = reinterpret_cast<char*>(images.is_narrow() ? pixels_ + numbers : pixels_);
    transpose_block(images.element)(
        read, images.channels * images.element, images.row(image, 0, first_row_),
        images.height * images.width * images.element, count, images.channels);
    if (images.is_narrow()) {
      load_function(ComputeLane::kF32, DType::kBF16)(numbers, pixels_, read, images.element);
    }
  }

  const float* at(int64_t y, int64_t x) const {
    if (y < 0 || y >= images_.height || x < 0 || x >= images_.width) return zeros_;
    return pixels_ + ((y - first_row_) * images_.width + x) * images_.channels;
  }

 private:
  const Images& images_;
  int64_t first_row_;
  const float* zeros_;
  float* pixels_;
};

/// Writes B' d B of the tile whose first pixel is (y, x).
template <class P>
void read_image_tile(const Pixels& pixels, int64_t y, int64_t x, const Tiles& tiles, int64_t tile) {
  using Lanes = typename P::Lanes;
  const float* d[4][4];
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) d[i][j] = pixels.at(y + i, x + j);
  }
  float* const to = tiles.at(tile);
  for (int64_t c = 0; c < tiles.channels; c += P::kLanes) {
    Lanes row[4][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Lanes a, b, e, f;
      P::load(a, d[0][j] + c);
      P::load(b, d[1][j] + c);
      P::load(e, d[2][j] + c);
      P::load(f, d[3][j] + c);
      row[0][j] = a - e;
      row[1][j] = b + e;
      row[2][j] = e - b;
      row[3][j] = b - f;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      float* const at = to + 4 * i * tiles.stride + c;
      P::store(at, row[i][0] - row[i][2]);
      P::store(at + tiles.stride, row[i][1] + row[i][2]);
      P::store(at + 2 * tiles.stride, row[i][2] - row[i][1]);
      P::store(at + 3 * tiles.stride, row[i][1] - row[i][3]);
    }
  }
}

/// Writes A y A' of the tile y of a map whose first pixel is (y, x).
template <class P>
void read_map_tile(const Pixels& pixels, int64_t y, int64_t x, const Tiles& tiles, int64_t tile) {
  using Lanes = typename P::Lanes;
  const float* const d[2][2] = {{pixels.at(y, x), pixels.at(y, x + 1)},
                                {pixels.at(y + 1, x), pixels.at(y + 1, x + 1)}};
  float* const to = tiles.at(tile);
  for (int64_t c = 0; c < tiles.channels; c += P::kLanes) {
    Lanes row[4][2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      Lanes a, b;
      P::load(a, d[0][j] + c);
      P::load(b, d[1][j] + c);
      row[0][j] = a;
      row[1][j] = a + b;
      row[2][j] = a - b;
      row[3][j] = -b;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      float* const at = to + 4 * i * tiles.stride + c;
      P::store(at, row[i][0]);
      P::store(at + tiles.stride, row[i][0] + row[i][1]);
      P::store(at + 2 * tiles.stride, row[i][0] - row[i][1]);
      P::store(at + 3 * tiles.stride, -row[i][1]);
    }
  }
}

/// Writes A' m A + bias of tile m, channels side by side, to the four pixels `to`.
template <class P>
void write_map_tile(const Tiles& tiles, int64_t tile, const float* bias, float* const (&to)[2][2]) {
  using Lanes = typename P::Lanes;
  const float* const from = tiles.at(tile);
  for (int64_t c = 0; c < tiles.channels; c += P::kLanes) {
    Lanes row[2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Lanes a, b, e, f;
      const float* const at = from + j * tiles.stride + c;
      P::load(a, at);
      P::load(b, at + 4 * tiles.stride);
      P::load(e, at + 8 * tiles.stride);
      P::load(f, at + 12 * tiles.stride);
      row[0][j] = a + b + e;
      row[1][j] = b - e - f;
    }
    Lanes added = {};
    if (bias != nullptr) P::load(added, bias + c);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      P::store(to[i][0] + c, row[i][0] + row[i][1] + row[i][2] + added);
      P::store(to[i][1] + c, row[i][1] - row[i][2] - row[i][3] + added);
    }
  }
}

/// Hands out parts of a thread's workspace, each on cache lines of its own.
class Room {
 public:
  Room(WorkspaceUse use, int64_t floats)
      : next_(static_cast<float*>(
            thread_workspace(use).room(static_cast<size_t>(floats) * sizeof(float)))) {}
  static int64_t rounded(int64_t floats) { return (floats + 15) / 16 * 16; }
  float* take(int64_t floats) {
    float* const taken = next_;
    next_ += rounded(floats);
    return taken;
  }

 private:
  float* next_;
};

/// Computes the weight of `tensors`; winograd_weight.cc.
void convolve_weight(const ConvProblem& problem, const ConvTensors& tensors);

}  // namespace lockstep::cpu::winograd
