#include "kernels/common/pool_windows.h"

#include <algorithm>

namespace lockstep {

namespace {

int64_t number_of(IntList list, size_t i) { return list.size() == 1 ? list[0] : list[i]; }

}  // namespace

PoolAxes strided_pool_axes(const TensorArg& input, const TensorArg& output, int spatial,
                           IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                           bool counts_padding) {
  PoolAxes axes;
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(i);
    PoolAxis& axis = axes[static_cast<size_t>(3 - spatial + i)];
    axis.size = input.size(i - spatial);
    axis.windows = output.size(i - spatial);
    axis.kernel = number_of(kernel_size, at);
    axis.stride = stride.empty() ? axis.kernel : number_of(stride, at);
    axis.padding = number_of(padding, at);
    axis.dilation = number_of(dilation, at);
    axis.adaptive = false;
    axis.counts_padding = counts_padding;
    // Steps that leave the padded input lead nowhere, however long they are: these do not overflow
    // in the arithmetic of the kernels.
    const int64_t longest = std::max<int64_t>(axis.size + axis.padding, 1);
    axis.stride = std::min(axis.stride, longest);
    axis.dilation = std::min(axis.dilation, longest);
  }
  return axes;
}

PoolAxes even_pool_axes(const TensorArg& input, const TensorArg& output, int spatial) {
  PoolAxes axes;
  for (int i = 0; i < spatial; ++i) {
    PoolAxis& axis = axes[static_cast<size_t>(3 - spatial + i)];
    axis.size = input.size(i - spatial);
    axis.windows = output.size(i - spatial);
  }
  return axes;
}

}  // namespace lockstep
