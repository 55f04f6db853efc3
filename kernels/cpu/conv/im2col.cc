#include <algorithm>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;

/// Geometry of the windows of one image plane (a channel of a batch entry).
struct Windows {
  int64_t image[2];
  int64_t kernel[2];
  int64_t dilation[2];
  int64_t padding[2];
  int64_t stride[2];
  int64_t counts[2];

  Windows(const TensorArg& images, IntList kernel_size, IntList dilations, IntList paddings,
          IntList strides) {
    for (int i = 0; i < 2; ++i) {
      const size_t k = static_cast<size_t>(i);
      image[i] = images.size(i - 2);
      kernel[i] = kernel_size[k];
      dilation[i] = dilations[k];
      padding[i] = paddings[k];
      stride[i] = strides[k];
      counts[i] = (image[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
    }
  }
  int64_t pixels() const { return image[0] * image[1]; }
  /// Number of elements in all windows of a plane.
  int64_t elements() const { return kernel[0] * kernel[1] * counts[0] * counts[1]; }

  /// Calls visit(index among the windows' elements, pixel or -1 outside the image) in order.
  template <class Visit>
  void for_each(Visit visit) const {
    int64_t at = 0;
    for (int64_t i = 0; i < kernel[0]; ++i) {
      for (int64_t j = 0; j < kernel[1]; ++j) {
        for (int64_t row = 0; row < counts[0]; ++row) {
          const int64_t y = row * stride[0] - padding[0] + i * dilation[0];
          const bool inside = y >= 0 && y < image[0];
          for (int64_t column = 0; column < counts[1]; ++column) {
            const int64_t x = column * stride[1] - padding[1] + j * dilation[1];
            visit(at++, inside && x >= 0 && x < image[1] ? y * image[1] + x : -1);
          }
        }
      }
    }
  }
};

void im2col(const Out& out, const In& self, IntList kernel_size, IntList dilation, IntList padding,
            IntList stride) {
  if (self.numel == 0) return;
  const Windows windows(self, kernel_size, dilation, padding, stride);
  const int64_t elements = windows.elements(), pixels = windows.pixels();
  with_bits(out.dtype, [&]<class T>() {
    parallel_for(0, self.numel / pixels, std::max<int64_t>(1, kGrain / elements),
                 [&](int64_t first, int64_t last) {
                   for (int64_t plane = first; plane < last; ++plane) {
                     T* to = out.data<T>() + plane * elements;
                     const T* from = self.data<T>() + plane * pixels;
                     windows.for_each([&](int64_t at, int64_t pixel) {
                       to[at] = pixel < 0 ? T(0) : from[pixel];
                     });
                   }
                 });
  });
}

void col2im(const Out& out, const In& self, IntList, IntList kernel_size, IntList dilation,
            IntList padding, IntList stride) {
  if (out.numel == 0) return;
  const Windows windows(out, kernel_size, dilation, padding, stride);
  const int64_t elements = windows.elements(), pixels = windows.pixels();
  const auto run = [&]<class T>() {
    using C = ComputeType<T>;
    parallel_for(0, out.numel / pixels, std::max<int64_t>(1, kGrain / elements),
                 [&](int64_t first, int64_t last) {
                   std::vector<C> sums(static_cast<size_t>(pixels));
                   for (int64_t plane = first; plane < last; ++plane) {
                     const T* from = self.data<T>() + plane * elements;
                     std::fill(sums.begin(), sums.end(), C(0));
                     windows.for_each([&](int64_t at, int64_t pixel) {
                       if (pixel >= 0) sums[static_cast<size_t>(pixel)] += convert<C>(from[at]);
                     });
                     T* to = out.data<T>() + plane * pixels;
                     for (int64_t i = 0; i < pixels; ++i) {
                       to[i] = convert<T>(sums[static_cast<size_t>(i)]);
                     }
                   }
                 });
  };
  out.dtype == DType::kBool ? run.template operator()<bool>() : with_floating_type(out.dtype, run);
}

}  // namespace

LS_KERNEL(CPU, "im2col", im2col, Strides::kContiguous);
LS_KERNEL(CPU, "col2im", col2im, Strides::kContiguous);

}  // namespace lockstep::cpu
