#include <algorithm>
#include <cstring>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/pad_border.h"
#include "kernels/common/pad_overlap.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/factory/copy.h"
#include "kernels/cpu/strided_copy.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;

void constant_pad_nd(const Out& out, const In& self, IntList pad, Scalar value) {
  fill_elements(out, value);
  const PadOverlap overlap(out, self, pad);
  if (overlap.is_empty()) return;
  CopyAxes axes;
  for (int d = 0; d < self.rank; ++d) {
    axes.push_back({overlap.lengths[static_cast<size_t>(d)], out.stride(d), self.stride(d)});
  }
  const int64_t element = static_cast<int64_t>(size_of(out.dtype));
  strided_copy(out.data<std::byte>() + overlap.to * element,
               self.data<std::byte>() + overlap.from * element, size_of(out.dtype), axes);
}

struct Reflect {
  static constexpr PadBorder kBorder = {.reflects = true};
};
struct Replicate {
  static constexpr PadBorder kBorder = {.reflects = false};
};

/// Planes padded to three dimensions (missing outer ones have size 1). `source` maps each position
/// of the padded plane along a dimension to a position of the unpadded one.
struct Planes {
  int64_t count = 1;
  std::vector<int64_t> source[3];
  int64_t padded = 1;  ///< elements of a padded plane
  int64_t plain = 1;   ///< elements of an unpadded one
  int64_t height = 1, width = 1;

  template <class Border>
  static Planes make(const TensorArg& plain, const TensorArg& padded, IntList padding, Border) {
    Planes planes;
    const int rank = static_cast<int>(padding.size()) / 2;
    for (int d = 0; d < plain.rank - rank; ++d) planes.count *= plain.size(d);
    for (int i = 0; i < 3; ++i) {
      const int behind = 2 - i;  // number of dimensions after this one
      const bool given = behind < rank;
      const int64_t size = given ? plain.size(-1 - behind) : 1;
      const int64_t wide = given ? padded.size(-1 - behind) : 1;
      const int64_t before = given ? padding[2 * static_cast<size_t>(behind)] : 0;
      for (int64_t place = 0; place < wide; ++place) {
        planes.source[i].push_back(Border::kBorder.source(place - before, size));
      }
      planes.padded *= wide;
      planes.plain *= size;
      if (i == 1) planes.height = size;
      if (i == 2) planes.width = size;
    }
    return planes;
  }

  /// Calls visit(offset in the padded plane, offset in the unpadded one) in order.
  template <class Visit>
  void for_each(Visit visit) const {
    int64_t at = 0;
    for (const int64_t z : source[0]) {
      for (const int64_t y : source[1]) {
        const int64_t row = (z * height + y) * width;
        for (const int64_t x : source[2]) visit(at++, row + x);
      }
    }
  }
};

template <class Border>
void pad(const Out& out, const In& self, IntList padding) {
  const Planes planes = Planes::make(self, out, padding, Border{});
  with_bits(out.dtype, [&]<class T>() {
    parallel_for(0, planes.count, std::max<int64_t>(1, kGrain / planes.padded),
                 [&](int64_t first, int64_t last) {
                   for (int64_t plane = first; plane < last; ++plane) {
                     T* to = out.data<T>() + plane * planes.padded;
                     const T* from = self.data<T>() + plane * planes.plain;
                     planes.for_each([&](int64_t at, int64_t place) { to[at] = from[place]; });
                   }
                 });
  });
}

template <class Border>
void pad_backward(const Out& out, const In& grad, const In&, IntList padding) {
  const Planes planes = Planes::make(out, grad, padding, Border{});
  with_floating_type(out.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    parallel_for(0, planes.count, std::max<int64_t>(1, kGrain / planes.padded),
                 [&](int64_t first, int64_t last) {
                   std::vector<C> sums(static_cast<size_t>(planes.plain));
                   for (int64_t plane = first; plane < last; ++plane) {
                     T* to = out.data<T>() + plane * planes.plain;
                     const T* from = grad.data<T>() + plane * planes.padded;
                     std::fill(sums.begin(), sums.end(), C(0));
                     planes.for_each([&](int64_t at, int64_t place) {
                       sums[static_cast<size_t>(place)] += static_cast<C>(from[at]);
                     });
                     for (int64_t i = 0; i < planes.plain; ++i) {
                       to[i] = T(sums[static_cast<size_t>(i)]);
                     }
                   }
                 });
  });
}

}  // namespace

LS_KERNEL(CPU, "constant_pad_nd", constant_pad_nd, Strides::kAny);
LS_KERNEL(CPU, "reflection_pad1d", pad<Reflect>, Strides::kContiguous);
LS_KERNEL(CPU, "reflection_pad2d", pad<Reflect>, Strides::kContiguous);
LS_KERNEL(CPU, "reflection_pad3d", pad<Reflect>, Strides::kContiguous);
LS_KERNEL(CPU, "reflection_pad1d_backward", pad_backward<Reflect>, Strides::kContiguous);
LS_KERNEL(CPU, "reflection_pad2d_backward", pad_backward<Reflect>, Strides::kContiguous);
LS_KERNEL(CPU, "reflection_pad3d_backward", pad_backward<Reflect>, Strides::kContiguous);
LS_KERNEL(CPU, "replication_pad1d", pad<Replicate>, Strides::kContiguous);
LS_KERNEL(CPU, "replication_pad2d", pad<Replicate>, Strides::kContiguous);
LS_KERNEL(CPU, "replication_pad3d", pad<Replicate>, Strides::kContiguous);
LS_KERNEL(CPU, "replication_pad1d_backward", pad_backward<Replicate>, Strides::kContiguous);
LS_KERNEL(CPU, "replication_pad2d_backward", pad_backward<Replicate>, Strides::kContiguous);
LS_KERNEL(CPU, "replication_pad3d_backward", pad_backward<Replicate>, Strides::kContiguous);

}  // namespace lockstep::cpu
