#include "kernels/cuda/pool.h"

#include <algorithm>

#include "core/library.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pool.fatbin.h"
#include "kernels/cuda/workspace.h"
#include "kernels/pool_windows.h"

namespace lockstep::cuda {

namespace {

const DTypeKernels kAverage = kernels_of_numbers(kImage, "pool_average");
const DTypeKernels kAverageBackward(kImage, "pool_average_backward");
const DTypeKernels kMax = kernels_of_numbers(kImage, "pool_max");
const DTypeKernels kMaxBackward(kImage, "pool_max_backward");
const Kernel kStrays(kImage, "pool_strays");
const FaultKind kOutOfRange[] = {{"max_pool2d_backward", "index out of range"},
                                 {"max_pool3d_backward", "index out of range"}};

constexpr std::array<int64_t, 1> kOne = {1};  // the dilation of windows that have none

int64_t inputs_of(const PoolAxes& axes) { return axes[0].size * axes[1].size * axes[2].size; }
int64_t windows_of(const PoolAxes& axes) {
  return axes[0].windows * axes[1].windows * axes[2].windows;
}

/// A call that writes windows from inputs, or `backward` the other way around.
Pool params_of(const Out& to, const In& from, const PoolAxes& axes, bool backward) {
  Pool p{};
  p.from = from.address;
  p.to = to.address;
  std::ranges::copy(axes, p.axes);
  p.numel = to.numel;
  const auto size_of_axis = [&](size_t d) { return backward ? axes[d].size : axes[d].windows; };
  const int64_t line = size_of_axis(2), slice = size_of_axis(1) * line;
  const int64_t plane = size_of_axis(0) * slice;
  p.plane = Cutter(plane, to.numel);
  p.slice = Cutter(slice, plane);
  p.line = Cutter(line, slice);
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

void average(const Out& to, const In& from, const PoolAxes& axes, bool backward,
             std::optional<int64_t> divisor_override) {
  Pool p = params_of(to, from, axes, backward);
  p.has_divisor = divisor_override.has_value();
  p.divisor = divisor_override.value_or(0);
  run(backward ? kAverageBackward : kAverage, p);
}

template <int kSpatial>
void avg_pool(const Out& out, const In& self, IntList kernel_size, IntList stride, IntList padding,
              bool, bool count_include_pad, std::optional<int64_t> divisor_override) {
  average(
      out, self,
      strided_pool_axes(self, out, kSpatial, kernel_size, stride, padding, kOne, count_include_pad),
      false, divisor_override);
}

template <int kSpatial>
void avg_pool_backward(const Out& out, const In& grad_output, const In& self, IntList kernel_size,
                       IntList stride, IntList padding, bool, bool count_include_pad,
                       std::optional<int64_t> divisor_override) {
  average(out, grad_output,
          strided_pool_axes(self, grad_output, kSpatial, kernel_size, stride, padding, kOne,
                            count_include_pad),
          true, divisor_override);
}

template <int kSpatial>
void adaptive_avg_pool(const Out& out, const In& self, IntList) {
  average(out, self, even_pool_axes(self, out, kSpatial), false, std::nullopt);
}

template <int kSpatial>
void adaptive_avg_pool_backward(const Out& out, const In& grad_output, const In& self) {
  average(out, grad_output, even_pool_axes(self, grad_output, kSpatial), true, std::nullopt);
}

template <int kSpatial>
void max_pool(const Out& out, const Out& indices, const In& self, IntList kernel_size,
              IntList stride, IntList padding, IntList dilation, bool) {
  Pool p = params_of(
      out, self,
      strided_pool_axes(self, out, kSpatial, kernel_size, stride, padding, dilation, false), false);
  p.indices = indices.data<int64_t>();
  run(kMax, p);
}

template <int kSpatial>
void max_pool_backward(const Out& out, const In& grad_output, const In& self, IntList kernel_size,
                       IntList stride, IntList padding, IntList dilation, bool, const In& indices) {
  Pool p = params_of(
      out, grad_output,
      strided_pool_axes(self, grad_output, kSpatial, kernel_size, stride, padding, dilation, false),
      true);
  if (p.numel == 0) return;
  p.indices = const_cast<int64_t*>(indices.data<int64_t>());
  p.fault = fault_place(kOutOfRange[kSpatial - 2]);
  const Workspace strays(static_cast<size_t>(p.planes) * sizeof(int32_t));
  p.strays = strays.data<int32_t>();
  launch(kStrays,
         {.blocks = {static_cast<unsigned>(p.planes), 1, 1}, .threads = 256, .shared_bytes = 0}, p);
  run(kMaxBackward, p);
}

}  // namespace

LS_KERNEL(CUDA, "avg_pool2d", avg_pool<2>, Strides::kContiguous);
LS_KERNEL(CUDA, "avg_pool3d", avg_pool<3>, Strides::kContiguous);
LS_KERNEL(CUDA, "avg_pool2d_backward", avg_pool_backward<2>, Strides::kContiguous);
LS_KERNEL(CUDA, "avg_pool3d_backward", avg_pool_backward<3>, Strides::kContiguous);
LS_KERNEL(CUDA, "_adaptive_avg_pool2d", adaptive_avg_pool<2>, Strides::kContiguous);
LS_KERNEL(CUDA, "_adaptive_avg_pool3d", adaptive_avg_pool<3>, Strides::kContiguous);
LS_KERNEL(CUDA, "_adaptive_avg_pool2d_backward", adaptive_avg_pool_backward<2>,
          Strides::kContiguous);
LS_KERNEL(CUDA, "_adaptive_avg_pool3d_backward", adaptive_avg_pool_backward<3>,
          Strides::kContiguous);
LS_KERNEL(CUDA, "max_pool2d_with_indices", max_pool<2>, Strides::kContiguous);
LS_KERNEL(CUDA, "max_pool3d_with_indices", max_pool<3>, Strides::kContiguous);
LS_KERNEL(CUDA, "max_pool2d_with_indices_backward", max_pool_backward<2>, Strides::kContiguous);
LS_KERNEL(CUDA, "max_pool3d_with_indices_backward", max_pool_backward<3>, Strides::kContiguous);

}  // namespace lockstep::cuda
