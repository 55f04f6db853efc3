#include <array>
#include <type_traits>

#include "core/base/parallel.h"
#include "kernels/cpu/block_product.h"
#include "kernels/cpu/conv/winograd_tiles.h"

namespace lockstep::cpu::winograd {

namespace {

// Tiles whose products are added in registers: enough that adding their sum to the others costs
// little, and few enough for the last cache.
constexpr int64_t kMostTiles = 256;
constexpr int64_t kFeatures = 64;  // of a task

/// Computes the gradient of a weight: that of the transformed weight is the sum over all tiles of
/// A y A' times B' d B, y a tile of the map's gradient and d of the image.
class WeightSum {
 public:
  WeightSum(const ConvProblem& p, const ConvTensors& t)
      : image_(image_of(p, t)),
        map_(map_of(p, t)),
        padding_{p.padding[0], p.padding[1]},
        grid_(map_, p.batch),
        is_narrow_(p.dtype == DType::kBF16),
        weight_(t.weight) {}

  void compute() {
    const int64_t rows = std::min(grid_.rows, std::max<int64_t>(1, kMostTiles / grid_.columns));
    const int64_t tiles = rows * grid_.columns;
    Room room(WorkspaceUse::kWinograd, Room::rounded(Tiles::room_of(tiles, image_.channels)) +
                                           Room::rounded(Tiles::room_of(tiles, map_.channels)) +
                                           kPlaces * image_.channels * map_.channels);
    image_tiles_ = {room.take(Tiles::room_of(tiles, image_.channels)),
                    Tiles::stride_of(tiles, image_.channels), image_.channels};
    map_tiles_ = {room.take(Tiles::room_of(tiles, map_.channels)),
                  Tiles::stride_of(tiles, map_.channels), map_.channels};
    sums_ = room.take(kPlaces * image_.channels * map_.channels);
    for (int64_t first = 0; first < grid_.rows; first += rows) {
      add_rows(first, std::min(grid_.rows, first + rows));
    }
    parallel_for(0, map_.channels, 1, [&](int64_t first, int64_t last) {
      with_f32_arithmetic([&]<class P>() {
        for (int64_t f = first; f < last; ++f) write_weight<P>(f);
      });
    });
  }

 private:
  void add_rows(int64_t first_row, int64_t last_row) const {
    parallel_for(first_row, last_row, 1, [&](int64_t first, int64_t last) {
      with_f32_arithmetic(
          [&]<class P>() { read_rows<P>(first, last, (first - first_row) * grid_.columns); });
    });
    const int64_t tiles = (last_row - first_row) * grid_.columns;
    const int64_t tasks = (map_.channels + kFeatures - 1) / kFeatures;
    parallel_for(0, kPlaces * tasks, 1, [&](int64_t first, int64_t last) {
      with_f32_arithmetic([&]<class P>() {
        for (int64_t task = first; task < last; ++task) {
          add_products<P>(task / tasks, task % tasks * kFeatures, tiles, first_row == 0);
        }
      });
    });
  }

  /// Transforms the tiles of some rows of the grid; the first of them is number `to`.
  template <class P>
  void read_rows(int64_t first_row, int64_t last_row, int64_t to) const {
    const int64_t rows = 2 * (last_row - first_row) + 2;
    const int64_t image_room = Pixels::room_of(image_, rows),
                  map_room = Pixels::room_of(map_, rows);
    Room room(WorkspaceUse::kWinogradBlock, Room::rounded(image_room) + map_room);
    float* const image_pixels = room.take(image_room);
    float* const map_pixels = room.take(map_room);
    const int64_t up = padding_[0], left = padding_[1];
    grid_.for_each_image(
        first_row, last_row, [&](int64_t image, int64_t first, int64_t last, int64_t tile) {
          const Pixels of_image(image_, image, 2 * first - up, 2 * last - up + 2, image_pixels);
          const Pixels of_map(map_, image, 2 * first, 2 * last, map_pixels);
          for (int64_t y = 2 * first; y < 2 * last; y += 2) {
            for (int64_t x = 0; x < 2 * grid_.columns; x += 2, ++tile) {
              read_image_tile<P>(of_image, y - up, x - left, image_tiles_, to + tile);
              read_map_tile<P>(of_map, y, x, map_tiles_, to + tile);
            }
          }
        });
  }

  template <class P>
  void add_products(int64_t place, int64_t feature, int64_t tiles, bool is_first) const {
    static constexpr auto kOnes = [] {
      std::array<float, kFeatures> ones{};
      ones.fill(1);
      return ones;
    }();
    const int64_t channels = image_.channels;
    const BlockProduct p{.a = map_tiles_.numbers + place * map_tiles_.stride + feature,
                         .a_row = 1,
                         .a_step = map_.channels,
                         .b = image_tiles_.numbers + place * image_tiles_.stride,
                         .b_step = channels,
                         .c = sums_ + (place * map_.channels + feature) * channels,
                         .c_row = channels};
    multiply_columns<P>(p, std::min(kFeatures, map_.channels - feature), {0, tiles, 0, channels},
                        is_first ? nullptr : kOnes.data());
  }

  /// Writes G' s G of the sums s of a feature.
  template <class P>
  void write_weight(int64_t feature) const {
    using Lanes = typename P::Lanes;
    const int64_t stride = map_.channels * image_.channels;
    const float* const from = sums_ + feature * image_.channels;
    for (int64_t c = 0; c < image_.channels; c += P::kLanes) {
      Lanes row[3][4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        Lanes a, b, e, f;
        const float* const at = from + j * stride + c;
        P::load(a, at);
        P::load(b, at + 4 * stride);
        P::load(e, at + 8 * stride);
        P::load(f, at + 12 * stride);
        row[0][j] = a + (b + e) * 0.5F;
        row[1][j] = (b - e) * 0.5F;
        row[2][j] = f + (b + e) * 0.5F;
      }
      float g[9][P::kLanes];
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) {
        P::store(g[3 * i], row[i][0] + (row[i][1] + row[i][2]) * 0.5F);
        P::store(g[3 * i + 1], (row[i][1] - row[i][2]) * 0.5F);
        P::store(g[3 * i + 2], row[i][3] + (row[i][1] + row[i][2]) * 0.5F);
      }
      const auto write = [&](auto* to) {
        using T = std::remove_pointer_t<decltype(to)>;
        to += (feature * image_.channels + c) * 9;
        for (int64_t k = 0; k < P::kLanes; ++k) {
          for (int64_t i = 0; i < 9; ++i) *to++ = T(g[i][k]);
        }
      };
      if (is_narrow_) {
        write(static_cast<BFloat16*>(weight_));
      } else {
        write(static_cast<float*>(weight_));
      }
    }
  }

  Images image_;
  Images map_;
  int64_t padding_[2];
  Grid grid_;
  bool is_narrow_;  ///< weights, images and maps are bf16
  void* weight_;
  Tiles image_tiles_{};
  Tiles map_tiles_{};
  float* sums_ = nullptr;
};

}  // namespace

void convolve_weight(const ConvProblem& problem, const ConvTensors& tensors) {
  WeightSum(problem, tensors).compute();
}

}  // namespace lockstep::cpu::winograd
