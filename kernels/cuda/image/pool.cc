#include "kernels/cuda/image/pool.h"

#include <algorithm>

#include "core/dispatch/kernel.h"
#include "core/tensor/memory_format.h"
#include "kernels/common/pool_windows.h"
#include "kernels/common/restrided.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/image/pool.fatbin.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

const DTypeKernels kAverage = kernels_of_numbers(kImage, "pool_average");
const DTypeKernels kAverageBackward(kImage, "pool_average_backward");
const DTypeKernels kMax = kernels_of_numbers(kImage, "pool_max");
const DTypeKernels kMaxBackward(kImage, "pool_max_backward");
const Kernel kStrays(kImage, "pool_strays");
const FaultKind kOutOfRange[] = {{"max_pool2d_backward", "index out of range"},
                                 {"max_pool3d_backward", "index out of range"}};

constexpr std::array<int64_t, 1> kOne = {1};  // dilation of pools without one

int64_t inputs_of(const PoolAxes& axes) { return axes[0].size * axes[1].size * axes[2].size; }
int64_t windows_of(const PoolAxes& axes) {
  return axes[0].windows * axes[1].windows * axes[2].windows;
}

/// The tensors of a call: all channels-last if `input` is, else all row-major.
class Images {
 public:
  Images(const char* op, const In& input, bool keeps_format = true)
      : channels_(keeps_format && suggests_channels_last(input.sizes(), input.strides())
                      ? input.size(1)
                      : 1),
        tensors_(op, kernel_stream().device, &copy_elements,
                 channels_ > 1 ? &channels_last_strides : &contiguous_strides) {}

  In read(const In& in) { return tensors_.read(in); }
  Out write(const Out& out) { return tensors_.write(out); }
  void finish() const { tensors_.finish(); }
  /// Number of interleaved planes: the channels in channels-last layout, else 1.
  int64_t channels() const { return channels_; }

 private:
  int64_t channels_;
  Restrided tensors_;
};

/// Makes the arguments of a call that reduces windows, or scatters to them if `backward`.
Pool params_of(const Images& images, const Out& to, const In& from, const PoolAxes& axes,
               bool backward) {
  Pool p{};
  p.from = from.address;
  p.to = to.address;
  std::ranges::copy(axes, p.axes);
  p.numel = to.numel;
  p.channels = images.channels();
  const auto size_of_axis = [&](size_t d) { return backward ? axes[d].size : axes[d].windows; };
  const int64_t line = size_of_axis(2), slice = size_of_axis(1) * line;
  const int64_t plane = size_of_axis(0) * slice;
  p.sample = IndexSplitter(plane * p.channels, to.numel);
  p.lane = IndexSplitter(p.channels, plane * p.channels);
  p.slice = IndexSplitter(slice, plane);
  p.line = IndexSplitter(line, slice);
  p.from_plane = backward ? windows_of(axes) : inputs_of(axes);
  p.planes = plane == 0 ? 0 : to.numel / plane;
  p.dtype = to.dtype;
  return p;
}

void run(const DTypeKernels& kernels, const Pool& p) {
  if (p.numel == 0) return;
  launch(kernels[p.dtype],
         {.blocks = {blocks_for(p.numel, 256), 1, 1}, .threads = 256, .shared_bytes = 0}, p);
}

void average(const Images& images, const Out& to, const In& from, const PoolAxes& axes,
             bool backward, std::optional<int64_t> divisor_override) {
  Pool p = params_of(images, to, from, axes, backward);
  p.has_divisor = divisor_override.has_value();
  p.divisor = divisor_override.value_or(0);
  run(backward ? kAverageBackward : kAverage, p);
  images.finish();
}

template <int kSpatial>
void avg_pool(const Out& given_out, const In& given_self, IntList kernel_size, IntList stride,
              IntList padding, bool, bool count_include_pad,
              std::optional<int64_t> divisor_override) {
  Images images("avg_pool", given_self, kSpatial == 2);
  const Out out = images.write(given_out);
  const In self = images.read(given_self);
  average(
      images, out, self,
      strided_pool_axes(self, out, kSpatial, kernel_size, stride, padding, kOne, count_include_pad),
      false, divisor_override);
}

template <int kSpatial>
void avg_pool_backward(const Out& given_out, const In& given_grad, const In& self,
                       IntList kernel_size, IntList stride, IntList padding, bool,
                       bool count_include_pad, std::optional<int64_t> divisor_override) {
  Images images("avg_pool_backward", self, kSpatial == 2);
  const Out out = images.write(given_out);
  const In grad = images.read(given_grad);
  average(images, out, grad,
          strided_pool_axes(self, grad, kSpatial, kernel_size, stride, padding, kOne,
                            count_include_pad),
          true, divisor_override);
}

template <int kSpatial>
void adaptive_avg_pool(const Out& given_out, const In& given_self, IntList) {
  Images images("_adaptive_avg_pool", given_self, kSpatial == 2);
  const Out out = images.write(given_out);
  const In self = images.read(given_self);
  average(images, out, self, even_pool_axes(self, out, kSpatial), false, std::nullopt);
}

template <int kSpatial>
void adaptive_avg_pool_backward(const Out& given_out, const In& given_grad, const In& self) {
  Images images("_adaptive_avg_pool_backward", self, kSpatial == 2);
  const Out out = images.write(given_out);
  const In grad = images.read(given_grad);
  average(images, out, grad, even_pool_axes(self, grad, kSpatial), true, std::nullopt);
}

template <int kSpatial>
void max_pool(const Out& given_out, const Out& given_indices, const In& given_self,
              IntList kernel_size, IntList stride, IntList padding, IntList dilation, bool) {
  Images images("max_pool", given_self);
  const Out out = images.write(given_out), indices = images.write(given_indices);
  const In self = images.read(given_self);
  Pool p = params_of(
      images, out, self,
      strided_pool_axes(self, out, kSpatial, kernel_size, stride, padding, dilation, false), false);
  p.indices = indices.data<int64_t>();
  run(kMax, p);
  images.finish();
}

template <int kSpatial>
void max_pool_backward(const Out& given_out, const In& given_grad, const In& self,
                       IntList kernel_size, IntList stride, IntList padding, IntList dilation, bool,
                       const In& given_indices) {
  if (given_out.numel == 0) return;
  Images images("max_pool_backward", self);
  const Out out = images.write(given_out);
  const In grad = images.read(given_grad), indices = images.read(given_indices);
  Pool p = params_of(
      images, out, grad,
      strided_pool_axes(self, grad, kSpatial, kernel_size, stride, padding, dilation, false), true);
  p.indices = const_cast<int64_t*>(indices.data<int64_t>());
  p.fault = fault_place(kOutOfRange[kSpatial - 2]);
  const Workspace flags(static_cast<size_t>(p.planes) * sizeof(int32_t));
  p.has_stray_index = flags.data<int32_t>();
  launch(kStrays,
         {.blocks = {static_cast<unsigned>(p.planes), 1, 1}, .threads = 256, .shared_bytes = 0}, p);
  run(kMaxBackward, p);
  images.finish();
}

}  // namespace

LS_KERNEL(CUDA, "avg_pool2d", avg_pool<2>, Strides::kAny);
LS_KERNEL(CUDA, "avg_pool3d", avg_pool<3>, Strides::kAny);
LS_KERNEL(CUDA, "avg_pool2d_backward", avg_pool_backward<2>, Strides::kAny);
LS_KERNEL(CUDA, "avg_pool3d_backward", avg_pool_backward<3>, Strides::kAny);
LS_KERNEL(CUDA, "_adaptive_avg_pool2d", adaptive_avg_pool<2>, Strides::kAny);
LS_KERNEL(CUDA, "_adaptive_avg_pool3d", adaptive_avg_pool<3>, Strides::kAny);
LS_KERNEL(CUDA, "_adaptive_avg_pool2d_backward", adaptive_avg_pool_backward<2>, Strides::kAny);
LS_KERNEL(CUDA, "_adaptive_avg_pool3d_backward", adaptive_avg_pool_backward<3>, Strides::kAny);
LS_KERNEL(CUDA, "max_pool2d_with_indices", max_pool<2>, Strides::kAny);
LS_KERNEL(CUDA, "max_pool3d_with_indices", max_pool<3>, Strides::kAny);
LS_KERNEL(CUDA, "max_pool2d_with_indices_backward", max_pool_backward<2>, Strides::kAny);
LS_KERNEL(CUDA, "max_pool3d_with_indices_backward", max_pool_backward<3>, Strides::kAny);

}  // namespace lockstep::cuda
