#include "kernels/cuda/image/upsample.h"

#include "core/device/device_runtime.h"
#include "core/dispatch/kernel.h"
#include "kernels/cuda/image/upsample.fatbin.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

using Number = std::optional<double>;

const Kernel kTaps(kImage, "upsample_taps");
const Kernel kReaders(kImage, "upsample_readers");
const UnitKernels kNearest(kImage, "upsample_nearest");
const DTypeKernels kForward(kImage, "upsample_forward");
const DTypeKernels kBackward(kImage, "upsample_backward");
const Kernel kByteTaps(kImage, "upsample_byte_taps");
const Kernel kBytes(kImage, "upsample_bytes");

/// Arguments of one call, with device memory for the taps that its kernels compute.
class Call {
 public:
  Upsample p{};

  /// `image` has the input's size, `result` the output's.
  Call(ResampleFilter filter, const TensorArg& image, const TensorArg& result, bool align_corners,
       Number scales_h, Number scales_w)
      : taps_(static_cast<size_t>(result.size(2) + result.size(3)) * sizeof(ResampleTaps)),
        readers_(static_cast<size_t>(image.size(2) + image.size(3)) * sizeof(PlaceRange)) {
    const Number scales[2] = {scales_h, scales_w};
    for (int d = 0; d < 2; ++d) {
      p.axes[d] = {filter, image.size(2 + d), result.size(2 + d), align_corners,
                   scales[d].value_or(0)};
    }
    p.taps[0] = taps_.data<ResampleTaps>();
    p.taps[1] = p.taps[0] + p.axes[0].to;
    p.readers[0] = readers_.data<PlaceRange>();
    p.readers[1] = p.readers[0] + p.axes[0].from;
  }

  void run(Kernel kernel, const Out& to, const In& from, bool backward) {
    p.from = from.address;
    p.to = to.address;
    p.numel = to.numel;
    if (p.numel == 0) return;
    const int64_t plane = to.size(2) * to.size(3);
    p.plane = IndexSplitter(plane, p.numel);
    p.line = IndexSplitter(to.size(3), plane);
    launch_over(kTaps, p.axes[0].to + p.axes[1].to);
    if (backward) launch_over(kReaders, p.axes[0].from + p.axes[1].from);
    launch(kernel, {.blocks = {blocks_for(p.numel, 256), 1, 1}, .threads = 256, .shared_bytes = 0},
           p);
  }

 private:
  void launch_over(Kernel kernel, int64_t places) const {
    launch(kernel,
           {.blocks = {static_cast<unsigned>((places + 255) / 256), 1, 1},
            .threads = 256,
            .shared_bytes = 0},
           p);
  }

  Workspace taps_, readers_;
};

void run_bytes(UpsampleBytes p, const ResampleAxis& axis, int64_t numel, int64_t inner) {
  p.numel = numel;
  p.from_size = axis.from;
  p.outer = IndexSplitter(axis.to * inner, numel);
  p.inner = IndexSplitter(inner, axis.to * inner);
  launch(kBytes, {.blocks = {blocks_for(numel, 256), 1, 1}, .threads = 256, .shared_bytes = 0}, p);
}

/// Resamples uint8 images as ATen does: along the rows, then along the columns, each result rounded
/// to a byte. An axis whose size does not change is skipped.
void resample_bytes(const Out& out, const In& self, const Call& call) {
  if (out.numel == 0) return;
  const ResampleAxis &down = call.p.axes[0], &across = call.p.axes[1];
  const Workspace shifts(2 * sizeof(int32_t));
  const UpsampleByteTaps taps{
      {down, across}, {call.p.taps[0], call.p.taps[1]}, shifts.data<int32_t>()};
  launch(kByteTaps, {.blocks = {2, 1, 1}, .threads = 256, .shared_bytes = 0}, taps);
  const int64_t planes = self.size(0) * self.size(1), wide = planes * down.from * across.to;
  const bool both = down.from != down.to && across.from != across.to;
  const Workspace between(static_cast<size_t>(both ? wide : 0));
  const auto* from = self.data<uint8_t>();
  if (across.from != across.to) {
    auto* const to = both ? between.data<uint8_t>() : out.data<uint8_t>();
    run_bytes({call.p.taps[1], taps.shifts + 1, from, to, 0, 0, {}, {}}, across, wide, 1);
    from = to;
  }
  if (down.from != down.to) {
    run_bytes({call.p.taps[0], taps.shifts, from, out.data<uint8_t>(), 0, 0, {}, {}}, down,
              out.numel, across.to);
  } else if (across.from == across.to) {
    const Stream stream = kernel_stream();
    require_runtime(stream.device)
        .copy(stream, out.address, self.address, static_cast<size_t>(out.numel), Transfer::kWithin);
  }
}

void nearest(const Out& out, const In& self, IntList, Number scales_h, Number scales_w) {
  Call(ResampleFilter::kNearest, self, out, false, scales_h, scales_w)
      .run(kNearest[size_of(out.dtype)], out, self, false);
}
void nearest_backward(const Out& out, const In& grad, IntList, IntList, Number scales_h,
                      Number scales_w) {
  Call(ResampleFilter::kNearest, out, grad, false, scales_h, scales_w)
      .run(kBackward[out.dtype], out, grad, true);
}

template <ResampleFilter kFilter>
void smooth(const Out& out, const In& self, IntList, bool align_corners, Number scales_h,
            Number scales_w) {
  Call call(kFilter, self, out, align_corners, scales_h, scales_w);
  if (out.dtype == DType::kU8) {
    resample_bytes(out, self, call);
  } else {
    call.run(kForward[out.dtype], out, self, false);
  }
}
template <ResampleFilter kFilter>
void smooth_backward(const Out& out, const In& grad, IntList, IntList, bool align_corners,
                     Number scales_h, Number scales_w) {
  Call(kFilter, out, grad, align_corners, scales_h, scales_w)
      .run(kBackward[out.dtype], out, grad, true);
}

}  // namespace

LS_KERNEL(CUDA, "upsample_nearest2d", nearest, Strides::kContiguous);
LS_KERNEL(CUDA, "upsample_nearest2d_backward", nearest_backward, Strides::kContiguous);
LS_KERNEL(CUDA, "upsample_bilinear2d", smooth<ResampleFilter::kLinear>, Strides::kContiguous);
LS_KERNEL(CUDA, "upsample_bilinear2d_backward", smooth_backward<ResampleFilter::kLinear>,
          Strides::kContiguous);
LS_KERNEL(CUDA, "upsample_bicubic2d", smooth<ResampleFilter::kCubic>, Strides::kContiguous);
LS_KERNEL(CUDA, "upsample_bicubic2d_backward", smooth_backward<ResampleFilter::kCubic>,
          Strides::kContiguous);

}  // namespace lockstep::cuda
