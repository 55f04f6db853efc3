#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/resample_taps.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

using Number = std::optional<double>;

constexpr int64_t kGrain = 16384;

/// The taps of every output row and column of a resampled plane.
struct Resampling {
  int64_t from[2];
  int64_t to[2];
  std::vector<ResampleTaps> rows;
  std::vector<ResampleTaps> columns;

  Resampling(ResampleFilter filter, const TensorArg& input, const TensorArg& result,
             bool align_corners, Number scales_h, Number scales_w)
      : from{input.size(2), input.size(3)}, to{result.size(2), result.size(3)} {
    for (int64_t i = 0; i < to[0]; ++i) {
      rows.push_back(
          resample_taps({filter, from[0], to[0], align_corners, scales_h.value_or(0)}, i));
    }
    for (int64_t i = 0; i < to[1]; ++i) {
      columns.push_back(
          resample_taps({filter, from[1], to[1], align_corners, scales_w.value_or(0)}, i));
    }
  }
  int64_t pixels() const { return from[0] * from[1]; }
  int64_t results() const { return to[0] * to[1]; }

  /// Calls visit(output pixel, input pixel, weight) in order.
  template <class Visit>
  void for_each(Visit visit) const {
    int64_t at = 0;
    for (const ResampleTaps& row : rows) {
      for (const ResampleTaps& column : columns) {
        for (int i = 0; i < row.count; ++i) {
          for (int j = 0; j < column.count; ++j) {
            visit(at, row.place[i] * from[1] + column.place[j], row.weight[i] * column.weight[j]);
          }
        }
        ++at;
      }
    }
  }
};

/// Resamples each plane: sums weighted pixels of `from` in a fixed order, one plane per thread.
/// kForward reads the input; otherwise `from` is the output's gradient and `to` the input's.
template <bool kForward>
void resample(const Out& to, const In& from, const Resampling& resampling) {
  const int64_t to_size = kForward ? resampling.results() : resampling.pixels();
  const int64_t from_size = kForward ? resampling.pixels() : resampling.results();
  with_floating_type(to.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    parallel_for(0, to.numel / to_size, std::max<int64_t>(1, kGrain / resampling.results()),
                 [&](int64_t first, int64_t last) {
                   std::vector<C> sums(static_cast<size_t>(to_size));
                   for (int64_t plane = first; plane < last; ++plane) {
                     const T* x = from.data<T>() + plane * from_size;
                     std::fill(sums.begin(), sums.end(), C(0));
                     resampling.for_each([&](int64_t result, int64_t pixel, double weight) {
                       const int64_t target = kForward ? result : pixel;
                       const C read = static_cast<C>(x[kForward ? pixel : result]);
                       sums[static_cast<size_t>(target)] += static_cast<C>(weight) * read;
                     });
                     T* y = to.data<T>() + plane * to_size;
                     for (int64_t i = 0; i < to_size; ++i) y[i] = T(sums[static_cast<size_t>(i)]);
                   }
                 });
  });
}

/// Taps for uint8 images, with fixed-point weights whose precision is the highest for which the
/// largest weight fits into 16 bits.
class ByteAxis {
 public:
  explicit ByteAxis(const std::vector<ResampleTaps>& taps) {
    double largest = 0;
    for (const ResampleTaps& each : taps) {
      ResampleTaps& merged = taps_.emplace_back();
      for (int i = 0; i < each.count; ++i) {
        // Positions outside the image were clamped to its border: equal positions are merged.
        const bool again = merged.count > 0 && merged.place[merged.count - 1] == each.place[i];
        if (again) {
          merged.weight[merged.count - 1] += each.weight[i];
        } else {
          merged.add(each.place[i], each.weight[i]);
        }
      }
      for (int i = 0; i < merged.count; ++i) largest = std::max(largest, merged.weight[i]);
    }
    while (places_ < 22 && std::floor(0.5 + largest * (1 << (places_ + 1))) < 1 << 15) ++places_;
    for (ResampleTaps& each : taps_) {
      for (int i = 0; i < each.count; ++i) {
        each.weight[i] = std::round(each.weight[i] * (1 << places_));
      }
    }
  }
  /// Resamples one line; the elements of both lines are `stride` apart.
  void run(const uint8_t* x, uint8_t* y, int64_t stride) const {
    for (const ResampleTaps& each : taps_) {
      int32_t sum = 1 << (places_ - 1);
      for (int i = 0; i < each.count; ++i) {
        sum += static_cast<int32_t>(each.weight[i]) * x[each.place[i] * stride];
      }
      *y = static_cast<uint8_t>(std::clamp(sum >> places_, 0, 255));
      y += stride;
    }
  }

 private:
  std::vector<ResampleTaps> taps_;
  int places_ = 0;
};

/// Resamples uint8 images as ATen does: along the rows, then along the columns, each result rounded
/// to a byte. An axis whose size does not change is skipped.
void resample_bytes(const Out& to, const In& from, const Resampling& resampling) {
  const ByteAxis rows(resampling.rows), columns(resampling.columns);
  const int64_t height = resampling.from[0], width = resampling.from[1];
  const int64_t new_height = resampling.to[0], new_width = resampling.to[1];
  parallel_for(0, to.numel / resampling.results(),
               std::max<int64_t>(1, kGrain / resampling.results()),
               [&](int64_t first, int64_t last) {
                 std::vector<uint8_t> wide(static_cast<size_t>(height * new_width));
                 for (int64_t plane = first; plane < last; ++plane) {
                   const uint8_t* x = from.data<uint8_t>() + plane * resampling.pixels();
                   uint8_t* y = to.data<uint8_t>() + plane * resampling.results();
                   if (width == new_width) {
                     std::copy(x, x + height * width, wide.begin());
                   } else {
                     for (int64_t i = 0; i < height; ++i) {
                       columns.run(x + i * width, wide.data() + i * new_width, 1);
                     }
                   }
                   if (height == new_height) {
                     std::copy(wide.begin(), wide.end(), y);
                   } else {
                     for (int64_t i = 0; i < new_width; ++i)
                       rows.run(wide.data() + i, y + i, new_width);
                   }
                 }
               });
}

void nearest(const Out& out, const In& self, IntList, Number scales_h, Number scales_w) {
  const Resampling resampling(ResampleFilter::kNearest, self, out, false, scales_h, scales_w);
  const int64_t pixels = resampling.pixels(), results = resampling.results();
  with_bits(out.dtype, [&]<class T>() {
    parallel_for(0, out.numel / results, std::max<int64_t>(1, kGrain / results),
                 [&](int64_t first, int64_t last) {
                   for (int64_t plane = first; plane < last; ++plane) {
                     const T* x = self.data<T>() + plane * pixels;
                     T* y = out.data<T>() + plane * results;
                     resampling.for_each(
                         [&](int64_t result, int64_t pixel, double) { y[result] = x[pixel]; });
                   }
                 });
  });
}
void nearest_backward(const Out& out, const In& grad, IntList, IntList, Number scales_h,
                      Number scales_w) {
  resample<false>(out, grad,
                  Resampling(ResampleFilter::kNearest, out, grad, false, scales_h, scales_w));
}

template <ResampleFilter kFilter>
void smooth(const Out& out, const In& self, IntList, bool align_corners, Number scales_h,
            Number scales_w) {
  const Resampling resampling(kFilter, self, out, align_corners, scales_h, scales_w);
  out.dtype == DType::kU8 ? resample_bytes(out, self, resampling)
                          : resample<true>(out, self, resampling);
}
template <ResampleFilter kFilter>
void smooth_backward(const Out& out, const In& grad, IntList, IntList, bool align_corners,
                     Number scales_h, Number scales_w) {
  resample<false>(out, grad, Resampling(kFilter, out, grad, align_corners, scales_h, scales_w));
}

}  // namespace

LS_KERNEL(CPU, "upsample_nearest2d", nearest, Strides::kContiguous);
LS_KERNEL(CPU, "upsample_nearest2d_backward", nearest_backward, Strides::kContiguous);
LS_KERNEL(CPU, "upsample_bilinear2d", smooth<ResampleFilter::kLinear>, Strides::kContiguous);
LS_KERNEL(CPU, "upsample_bilinear2d_backward", smooth_backward<ResampleFilter::kLinear>,
          Strides::kContiguous);
LS_KERNEL(CPU, "upsample_bicubic2d", smooth<ResampleFilter::kCubic>, Strides::kContiguous);
LS_KERNEL(CPU, "upsample_bicubic2d_backward", smooth_backward<ResampleFilter::kCubic>,
          Strides::kContiguous);

}  // namespace lockstep::cpu
