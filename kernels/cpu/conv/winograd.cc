#include "kernels/cpu/conv/winograd.h"

#include "core/base/parallel.h"
#include "kernels/cpu/block_product.h"
#include "kernels/cpu/conv/winograd_tiles.h"
#include "kernels/cpu/matmul/onednn.h"

namespace lockstep::cpu::winograd {

namespace {

constexpr int64_t kPanel = 32;      // results side by side that a panel of weights computes
constexpr int64_t kResults = 64;    // channels of the result that are computed at a time
constexpr int64_t kMostTiles = 64;  // of a block: tiles and products lie in a core's cache

/// A convolution at stride 1 of `from` that gives `to`.
struct Filter {
  Images from;
  Images to;
  int64_t padding[2];
  const float* weight;
  int64_t from_step;  ///< elements of the weight from one channel of `from` to the next
  int64_t to_step;
  bool is_mirrored;  ///< in both directions
  const float* bias;
};

/// An image's gradient is the convolution of the map's gradient with the mirrored kernels.
Filter filter_of(ConvResult result, const ConvProblem& p, const ConvTensors& t) {
  const auto* const weight = static_cast<const float*>(t.weight);
  if (result == ConvResult::kMap) {
    return {image_of(p, t), map_of(p, t), {p.padding[0], p.padding[1]},     weight, 9,
            9 * p.channels, false,        static_cast<const float*>(t.bias)};
  }
  return {map_of(p, t), image_of(p, t), {2 - p.padding[0], 2 - p.padding[1]},
          weight,       9 * p.channels, 9,
          true,         nullptr};
}

/// Transformed weights: number `place` of channel c of `from` and channel k of `to` lies at
/// place * (all channels) + kPanel * (all of from) * (k / kPanel) + c * width + k % kPanel, where
/// width is the number of channels of the panel.
template <class P>
void transform_weights(const Filter& f, int64_t panel, float* to) {
  using Lanes = typename P::Lanes;
  const int64_t first = panel * kPanel;
  const int64_t width = std::min(kPanel, f.to.channels - first);
  const int64_t stride = f.from.channels * f.to.channels;
  to += first * f.from.channels;
  for (int64_t c = 0; c < f.from.channels; ++c, to += width) {
    float g[9][kPanel];
    for (int64_t k = 0; k < width; ++k) {
      const float* const from = f.weight + c * f.from_step + (first + k) * f.to_step;
      for (int64_t i = 0; i < 9; ++i) g[i][k] = from[f.is_mirrored ? 8 - i : i];
    }
    for (int64_t k = 0; k < width; k += P::kLanes) {
      Lanes row[4][3];
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) {
        Lanes a, b, e;
        P::load(a, &g[j][k]);
        P::load(b, &g[3 + j][k]);
        P::load(e, &g[6 + j][k]);
        row[0][j] = a;
        row[1][j] = (a + e + b) * 0.5F;
        row[2][j] = (a + e - b) * 0.5F;
        row[3][j] = e;
      }
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        float* const at = to + 4 * i * stride + k;
        P::store(at, row[i][0]);
        P::store(at + stride, (row[i][0] + row[i][2] + row[i][1]) * 0.5F);
        P::store(at + 2 * stride, (row[i][0] + row[i][2] - row[i][1]) * 0.5F);
        P::store(at + 3 * stride, row[i][2]);
      }
    }
  }
}

/// Computes blocks of tiles: transforms them, multiplies by the weights, and transforms back.
class Blocks {
 public:
  Blocks(const Filter& filter, const Grid& grid, int64_t rows, const float* weights)
      : filter_(filter), grid_(grid), rows_(rows), weights_(weights) {}

  int64_t count() const { return (grid_.rows + rows_ - 1) / rows_; }

  template <class P>
  void compute(int64_t block) const {
    const int64_t tiles = (rows_ * grid_.columns + kRowUnit - 1) / kRowUnit * kRowUnit;
    const int64_t channels = filter_.from.channels;
    // Of one image at a time.
    const int64_t rows = std::min(rows_, grid_.rows_of_map);
    const int64_t pixels = Pixels::room_of(filter_.from, 2 * rows + 2);
    const int64_t written = 2 * rows * filter_.to.width * kResults;
    Room room(WorkspaceUse::kWinogradBlock, Room::rounded(pixels) +
                                                Room::rounded(Tiles::room_of(tiles, channels)) +
                                                Room::rounded(Tiles::room_of(tiles, kResults)) +
                                                Room::rounded(written) + kResults);
    float* const pixel_room = room.take(pixels);
    const Tiles read{room.take(Tiles::room_of(tiles, channels)), Tiles::stride_of(tiles, channels),
                     channels};
    float* const products = room.take(Tiles::room_of(tiles, kResults));
    float* const results = room.take(written);
    float* const nowhere = room.take(kResults);

    const int64_t first_row = block * rows_, last_row = std::min(grid_.rows, first_row + rows_);
    read_tiles<P>(first_row, last_row, pixel_room, read);
    const int64_t rounded_tiles =
        ((last_row - first_row) * grid_.columns + kRowUnit - 1) / kRowUnit * kRowUnit;
    for (int64_t k = 0; k < filter_.to.channels; k += kResults) {
      const int64_t width = std::min(kResults, filter_.to.channels - k);
      const Tiles product{products, Tiles::stride_of(tiles, width), width};
      multiply_by_weights<P>(read, rounded_tiles, k, product);
      write_results<P>(first_row, last_row, product, k, results, nowhere);
    }
  }

 private:
  template <class P>
  void read_tiles(int64_t first_row, int64_t last_row, float* room, const Tiles& to) const {
    const int64_t up = filter_.padding[0], left = filter_.padding[1];
    grid_.for_each_image(
        first_row, last_row, [&](int64_t image, int64_t first, int64_t last, int64_t tile) {
          const Pixels pixels(filter_.from, image, 2 * first - up, 2 * last - up + 2, room);
          for (int64_t row = first; row < last; ++row) {
            for (int64_t column = 0; column < grid_.columns; ++column) {
              read_image_tile<P>(pixels, 2 * row - up, 2 * column - left, to, tile++);
            }
          }
        });
  }

  /// The products of `tiles` tiles for the result's channels from `first` on.
  template <class P>
  void multiply_by_weights(const Tiles& read, int64_t tiles, int64_t first,
                           const Tiles& product) const {
    for (int64_t place = 0; place < kPlaces; ++place) {
      for (int64_t k = 0; k < product.channels; k += kPanel) {
        const int64_t width = std::min(kPanel, product.channels - k);
        const float* const panel =
            weights_ + (place * filter_.to.channels + first + k) * read.channels;
        const BlockProduct p{.a = read.numbers + place * read.stride,
                             .a_row = read.channels,
                             .a_step = 1,
                             .b = panel,
                             .b_step = width,
                             .c = product.numbers + place * product.stride + k,
                             .c_row = product.channels};
        multiply_columns<P>(p, tiles, {0, read.channels, 0, width}, nullptr);
      }
    }
  }

  template <class P>
  void write_results(int64_t first_row, int64_t last_row, const Tiles& product, int64_t channel,
                     float* results, float* nowhere) const {
    const Images& to = filter_.to;
    const float* const bias = filter_.bias == nullptr ? nullptr : filter_.bias + channel;
    grid_.for_each_image(
        first_row, last_row, [&](int64_t image, int64_t first, int64_t last, int64_t tile) {
          const int64_t begin = 2 * first, end = std::min(to.height, 2 * last);
          const auto pixel = [&](int64_t y, int64_t x) {
            if (y >= end || x >= to.width) return nowhere;
            return results + ((y - begin) * to.width + x) * product.channels;
          };
          for (int64_t y = begin; y < 2 * last; y += 2) {
            for (int64_t x = 0; x < 2 * grid_.columns; x += 2) {
              write_map_tile<P>(
                  product, tile++, bias,
                  {{pixel(y, x), pixel(y, x + 1)}, {pixel(y + 1, x), pixel(y + 1, x + 1)}});
            }
          }
          constexpr auto kSize = static_cast<int64_t>(sizeof(float));
          static const TransposeBlock transpose = transpose_block(kSize);
          transpose(to.row(image, channel, begin), to.height * to.width * kSize,
                    reinterpret_cast<const char*>(results), product.channels * kSize,
                    product.channels, (end - begin) * to.width);
        });
  }

  const Filter& filter_;
  const Grid& grid_;
  int64_t rows_;  // of the grid in a block
  const float* weights_;
};

void convolve_images(const Filter& filter, int64_t batch) {
  const int64_t channels = filter.from.channels * filter.to.channels;
  float* const weights = Room(WorkspaceUse::kWinograd, kPlaces * channels).take(0);
  parallel_for(0, (filter.to.channels + kPanel - 1) / kPanel, 1, [&](int64_t first, int64_t last) {
    with_f32_arithmetic([&]<class P>() {
      for (int64_t panel = first; panel < last; ++panel) {
        transform_weights<P>(filter, panel, weights);
      }
    });
  });
  const Grid grid(filter.to, batch);
  const int64_t rows = std::max<int64_t>(1, kMostTiles / grid.columns);
  const Blocks blocks(filter, grid, std::min(rows, grid.rows), weights);
  parallel_for(0, blocks.count(), 1, [&](int64_t first, int64_t last) {
    with_f32_arithmetic([&]<class P>() {
      for (int64_t block = first; block < last; ++block) blocks.compute<P>(block);
    });
  });
}

}  // namespace

bool fits(ConvResult result, const ConvProblem& p) {
  const bool is_narrow = p.dtype == DType::kBF16;
  if (is_narrow && (result != ConvResult::kWeight || onednn::has_tiles())) return false;
  if ((p.dtype != DType::kF32 && !is_narrow) || p.groups != 1 || p.rank() != 2 || p.is_empty())
    return false;
  for (size_t i = 0; i < 2; ++i) {
    if (p.kernel[i] != 3 || p.stride[i] != 1 || p.dilation[i] != 1 || p.padding[i] > 2)
      return false;
    // In a small odd map tiles compute much that nobody reads.
    if (p.map[i] < 4 || p.map[i] != p.image[i] + 2 * p.padding[i] - 2) return false;
  }
  // Vectors hold 16 channels; with few of them the transformations cost more than they save.
  constexpr int64_t kVector = 16, kLeast = 32;
  return p.channels % kVector == 0 && p.features % kVector == 0 &&
         std::min(p.channels, p.features) >= kLeast;
}

void convolve(ConvResult result, const ConvProblem& problem, const ConvTensors& tensors) {
  if (result == ConvResult::kWeight) return convolve_weight(problem, tensors);
  convolve_images(filter_of(result, problem, tensors), problem.batch);
}

}  // namespace lockstep::cpu::winograd
