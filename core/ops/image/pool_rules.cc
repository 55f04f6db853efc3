#include "core/ops/image/pool_rules.h"

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep::rules {

namespace {

/// Number of windows along a dimension.
int64_t count_windows(std::string_view op, int64_t size, int64_t kernel, int64_t stride,
                      int64_t padding, int64_t dilation, bool ceil_mode) {
  const CheckedInt reach = CheckedInt(op, dilation) * (kernel - 1) + 1;
  const int64_t room = (CheckedInt(op, padding) * 2 + size - reach).value();
  if (!ceil_mode) return room < 0 ? 0 : room / stride + 1;
  if (room < -(stride - 1)) return 0;
  const int64_t count = room / stride + (room % stride > 0 ? 1 : 0) + 1;
  // The last window must begin inside the input or the padding before it.
  return count > 1 && (size + padding - 1) / stride < count - 1 ? count - 1 : count;
}

/// Whether every window reads at least one element; false if dilation skips the whole input.
bool every_window_has_a_place(int64_t size, int64_t count, int64_t stride, int64_t padding,
                              int64_t dilation) {
  for (int64_t o = 0; o < count; ++o) {
    const int64_t start = o * stride - padding;
    const int64_t first = start < 0 ? start + (-start + dilation - 1) / dilation * dilation : start;
    if (first >= size) return false;
  }
  return true;
}

}  // namespace

Dims each(std::string_view op, std::string_view name, IntList list, size_t spatial, int64_t least) {
  LS_CHECK(list.size() == 1 || list.size() == spatial, ShapeError,
           "[{}] expected one {}, or one for each of {} spatial dimensions, got {}.", op, name,
           spatial, to_string(list));
  for (const int64_t number : list) {
    LS_CHECK(number >= least, ShapeError, "[{}] expected {} of at least {}, got {}.", op, name,
             least, to_string(list));
  }
  return list.size() == spatial ? to_dims(list) : Dims(spatial, list[0]);
}

Windows windows(std::string_view op, size_t spatial, IntList kernel_size, IntList stride,
                IntList padding, IntList dilation) {
  Windows w;
  w.kernel = each(op, "kernel_size", kernel_size, spatial, 1);
  w.stride = stride.empty() ? w.kernel : each(op, "stride", stride, spatial, 1);
  w.padding = each(op, "padding", padding, spatial, 0);
  w.dilation = each(op, "dilation", dilation, spatial, 1);
  for (size_t i = 0; i < spatial; ++i) {
    LS_CHECK(w.padding[i] <= w.kernel[i] / 2, ShapeError,
             "[{}] expected padding of at most half the kernel, got padding {} for kernel_size {}.",
             op, to_string(padding), to_string(kernel_size));
  }
  return w;
}

void check_input(std::string_view op, const Tensor& self, size_t spatial) {
  const auto rank = static_cast<size_t>(self.dim());
  LS_CHECK(rank == spatial + 1 || rank == spatial + 2, ShapeError,
           "[{}] expected input [channels, spatial...] or [batch, channels, spatial...] with {} "
           "spatial dimensions, got shape {}.",
           op, spatial, self.shape());
  LS_CHECK(self.dtype() != DType::kBool, DTypeError, "[{}] expected numbers, got bool.", op);
}

void check_not_empty(std::string_view op, const Tensor& self, size_t spatial) {
  for (int64_t d = self.dim() - static_cast<int64_t>(spatial) - 1; d < self.dim(); ++d) {
    LS_CHECK(self.size(d) > 0, ShapeError,
             "[{}] expected channels and spatial dimensions that are not empty, got {}.", op,
             self.shape());
  }
}

Dims pooled_sizes(std::string_view op, const Tensor& self, size_t spatial, const Windows& w,
                  bool ceil_mode) {
  check_input(op, self, spatial);
  check_not_empty(op, self, spatial);
  Dims sizes = to_dims(self.sizes());
  for (size_t i = 0; i < spatial; ++i) {
    int64_t& size = sizes[sizes.size() - spatial + i];
    const int64_t before = size;
    size =
        count_windows(op, size, w.kernel[i], w.stride[i], w.padding[i], w.dilation[i], ceil_mode);
    LS_CHECK(size >= 1, ShapeError,
             "[{}] no window fits into spatial dimension {}: input {}, padding {}, kernel_size {}. "
             "Pad more or use a smaller kernel.",
             op, i, before, w.padding[i], w.kernel[i]);
    LS_CHECK(every_window_has_a_place(before, size, w.stride[i], w.padding[i], w.dilation[i]),
             ShapeError,
             "[{}] a window of spatial dimension {} lies outside the input: input {}, padding {}, "
             "dilation {}. Pad or dilate less.",
             op, i, before, w.padding[i], w.dilation[i]);
  }
  return sizes;
}

void check_gradient(std::string_view op, const Tensor& grad_output, const Tensor& self,
                    IntList sizes) {
  LS_CHECK(is_floating(self.dtype()), DTypeError, "[{}] expected a floating input, got {}.", op,
           to_string(self.dtype()));
  LS_CHECK(same(grad_output.sizes(), sizes), ShapeError,
           "[{}] the gradient has the wrong shape: expected {}, got {}.", op, to_string(sizes),
           grad_output.shape());
  LS_CHECK(grad_output.dtype() == self.dtype(), DTypeError,
           "[{}] dtypes of gradient and input differ: expected {}, got {}.", op,
           to_string(self.dtype()), to_string(grad_output.dtype()));
}

Outputs like_input(IntList sizes, const Tensor& self, bool keeps_format) {
  Outputs outputs = one(sizes, self.dtype());
  if (keeps_format) keep_format(outputs.specs[0], self);
  return outputs;
}

}  // namespace lockstep::rules
