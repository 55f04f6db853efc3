#include "kernels/cpu/conv/conv_loop.h"

#include <array>
#include <memory>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/gemm_loop.h"

namespace lockstep::cpu {

namespace {

/// A problem padded to three spatial dimensions; missing leading dimensions have size 1.
struct Window {
  std::array<int64_t, 3> image{1, 1, 1}, kernel{1, 1, 1}, map{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};

  explicit Window(const ConvProblem& p) {
    for (size_t i = 0; i < p.rank(); ++i) {
      const size_t at = 3 - p.rank() + i;
      image[at] = p.image[i], kernel[at] = p.kernel[i], map[at] = p.map[i];
      stride[at] = p.stride[i], padding[at] = p.padding[i], dilation[at] = p.dilation[i];
    }
  }
};

/// Range [first, last) of output positions o along a dimension for which kernel position k reads
/// inside the image.
struct Inside {
  int64_t first;
  int64_t last;
};
Inside inside(const Window& w, size_t dim, int64_t k) {
  const int64_t shift = k * w.dilation[dim] - w.padding[dim];  // image position for o = 0
  const int64_t stride = w.stride[dim];
  const int64_t first = shift >= 0 ? 0 : (-shift - 1) / stride + 1;
  const int64_t room = w.image[dim] - shift;  // o * stride < room
  const int64_t last = room <= 0 ? 0 : (room - 1) / stride + 1;
  return {std::min(first, w.map[dim]), std::clamp(last, std::min(first, w.map[dim]), w.map[dim])};
}

/// Calls `row(column, image, count)` for each run of unfolded elements inside the image and
/// `outside(column, count)` for each run in the padding. Element (k, o) of an unfolded channel has
/// offset k * map size + o (`column`); `image` is the offset of the run's first pixel, and the
/// following pixels are a stride apart.
template <class Row, class OutsideRow>
void for_each_run(const Window& w, Row row, OutsideRow outside) {
  int64_t column = 0;
  for (int64_t k0 = 0; k0 < w.kernel[0]; ++k0) {
    const Inside deep = inside(w, 0, k0);
    for (int64_t k1 = 0; k1 < w.kernel[1]; ++k1) {
      const Inside high = inside(w, 1, k1);
      for (int64_t k2 = 0; k2 < w.kernel[2]; ++k2) {
        const Inside wide = inside(w, 2, k2);
        for (int64_t o0 = 0; o0 < w.map[0]; ++o0) {
          const int64_t i0 = o0 * w.stride[0] + k0 * w.dilation[0] - w.padding[0];
          for (int64_t o1 = 0; o1 < w.map[1]; ++o1, column += w.map[2]) {
            if (o0 < deep.first || o0 >= deep.last || o1 < high.first || o1 >= high.last) {
              outside(column, w.map[2]);
              continue;
            }
            const int64_t i1 = o1 * w.stride[1] + k1 * w.dilation[1] - w.padding[1];
            const int64_t i2 = wide.first * w.stride[2] + k2 * w.dilation[2] - w.padding[2];
            outside(column, wide.first);
            row(column + wide.first, (i0 * w.image[1] + i1) * w.image[2] + i2,
                wide.last - wide.first);
            outside(column + wide.last, w.map[2] - wide.last);
          }
        }
      }
    }
  }
}

/// Computes one group of one image.
template <class T>
class Unfolded {
 public:
  explicit Unfolded(const ConvProblem& p)
      : p_(p),
        window_(p),
        channels_(p.channels / p.groups),
        features_(p.features / p.groups),
        depth_(channels_ * p.kernel_size()),
        places_(p.map_size()),
        columns_(std::make_unique_for_overwrite<T[]>(static_cast<size_t>(depth_ * places_))) {}

  /// map = weight * unfolded image + bias.
  void make_map(const ConvTensors& t, int64_t n, int64_t g) {
    unfold(image_of(t, n, g));
    Product product = {.dtype = p_.dtype, .m = features_, .n = places_, .k = depth_};
    product.a = {weight_of(t, g), depth_};
    product.b = {columns_.get(), places_};
    if (t.bias != nullptr) {
      product.addend = {static_cast<const T*>(t.bias) + g * features_, 0, 1, 0};
      product.beta = 1;
    }
    product.result = map_of(t, n, g);
    product.ld = std::max<int64_t>(places_, 1);
    gemm(product);
  }
  /// image = folded(weight^T * map).
  void make_image(const ConvTensors& t, int64_t n, int64_t g) {
    Product product = {.dtype = p_.dtype, .m = depth_, .n = places_, .k = features_};
    product.a = {weight_of(t, g), std::max<int64_t>(depth_, 1), true};
    product.b = {map_of(t, n, g), std::max<int64_t>(places_, 1)};
    product.result = columns_.get();
    product.ld = std::max<int64_t>(places_, 1);
    gemm(product);
    fold(image_of(t, n, g));
  }
  /// sums [features, depth] of the group += map * (unfolded image)^T.
  void add_weight(const ConvTensors& t, int64_t n, int64_t g, T* sums) {
    unfold(image_of(t, n, g));
    Product product = {.dtype = p_.dtype, .m = features_, .n = depth_, .k = places_};
    product.a = {map_of(t, n, g), std::max<int64_t>(places_, 1)};
    product.b = {columns_.get(), std::max<int64_t>(places_, 1), true};
    product.addend = {sums, 0, depth_, 1};
    product.beta = 1;
    product.result = sums;
    product.ld = std::max<int64_t>(depth_, 1);
    gemm(product);
  }

 private:
  T* image_of(const ConvTensors& t, int64_t n, int64_t g) const {
    return static_cast<T*>(t.image) + n * p_.image_count() + g * channels_ * p_.image_size();
  }
  T* map_of(const ConvTensors& t, int64_t n, int64_t g) const {
    return static_cast<T*>(t.map) + n * p_.map_count() + g * features_ * places_;
  }
  T* weight_of(const ConvTensors& t, int64_t g) const {
    return static_cast<T*>(t.weight) + g * features_ * depth_;
  }

  void unfold(const T* image) {
    const int64_t stride = window_.stride[2];
    for (int64_t c = 0; c < channels_; ++c) {
      const T* from = image + c * p_.image_size();
      T* to = columns_.get() + c * p_.kernel_size() * places_;
      for_each_run(
          window_,
          [&](int64_t column, int64_t place, int64_t count) {
            for (int64_t i = 0; i < count; ++i) to[column + i] = from[place + i * stride];
          },
          [&](int64_t column, int64_t count) { std::fill_n(to + column, count, T(0)); });
    }
  }
  /// Sums the unfolded elements back into the image (col2im), in SumType, in which integers wrap
  /// around.
  void fold(T* image) const {
    const int64_t stride = window_.stride[2];
    std::fill_n(image, channels_ * p_.image_size(), T(0));
    for (int64_t c = 0; c < channels_; ++c) {
      T* to = image + c * p_.image_size();
      const T* from = columns_.get() + c * p_.kernel_size() * places_;
      for_each_run(
          window_,
          [&](int64_t column, int64_t place, int64_t count) {
            for (int64_t i = 0; i < count; ++i) {
              T& sum = to[place + i * stride];
              sum = static_cast<T>(static_cast<SumType<T>>(sum) +
                                   static_cast<SumType<T>>(from[column + i]));
            }
          },
          [](int64_t, int64_t) {});
    }
  }

  const ConvProblem& p_;
  Window window_;
  int64_t channels_;
  int64_t features_;
  int64_t depth_;   ///< inner dimension of the products: channels times kernel size of one group
  int64_t places_;  ///< elements of one map channel
  std::unique_ptr<T[]> columns_;
};

template <class T>
void make_weight(const ConvProblem& p, const ConvTensors& t) {
  const int64_t parts = weight_parts(p);
  const int64_t count = p.weight_count();
  const int64_t group_count = count / p.groups;
  T* const result = static_cast<T*>(t.weight);
  // The first part is summed in the result itself; the other parts are added to it.
  const auto others = std::make_unique<T[]>(static_cast<size_t>((parts - 1) * count));
  std::fill_n(result, count, T(0));
  parallel_for(0, parts * p.groups, 1, [&](int64_t first, int64_t last) {
    Unfolded<T> unfolded(p);
    for (int64_t task = first; task < last; ++task) {
      const int64_t part = task / p.groups, g = task % p.groups;
      T* sums = (part == 0 ? result : others.get() + (part - 1) * count) + g * group_count;
      for (int64_t n = p.batch * part / parts; n < p.batch * (part + 1) / parts; ++n) {
        unfolded.add_weight(t, n, g, sums);
      }
    }
  });
  for (int64_t part = 1; part < parts; ++part) {
    const T* sums = others.get() + (part - 1) * count;
    for (int64_t i = 0; i < count; ++i) {
      result[i] =
          static_cast<T>(static_cast<SumType<T>>(result[i]) + static_cast<SumType<T>>(sums[i]));
    }
  }
}

}  // namespace

void convolve_by_loops(ConvResult result, const ConvProblem& p, const ConvTensors& t) {
  with_type(p.dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Half> ||
                  std::is_same_v<T, BFloat16>) {
      throw InternalError("[convolution] the loops do not support f16, bf16 or bool.");
    } else if (result == ConvResult::kWeight) {
      make_weight<T>(p, t);
    } else {
      parallel_for(0, p.batch * p.groups, 1, [&](int64_t first, int64_t last) {
        Unfolded<T> unfolded(p);
        for (int64_t task = first; task < last; ++task) {
          const int64_t n = task / p.groups, g = task % p.groups;
          if (result == ConvResult::kMap) {
            unfolded.make_map(t, n, g);
          } else {
            unfolded.make_image(t, n, g);
          }
        }
      });
    }
  });
}

}  // namespace lockstep::cpu
