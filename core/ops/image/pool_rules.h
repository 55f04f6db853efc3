#pragma once

#include <cstddef>
#include <string_view>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Parts of the shape rules of pooling, which stand above the operators' blocks. `spatial` is the
// number of spatial dimensions.

/// Arguments of a pooling, one number per spatial dimension.
struct Windows {
  Dims kernel;
  Dims stride;
  Dims padding;
  Dims dilation;
};
/// Checks the arguments; an empty stride is that of the kernel.
Windows windows(std::string_view op, size_t spatial, IntList kernel_size, IntList stride,
                IntList padding, IntList dilation);
/// The list with one number per spatial dimension, each at least `least`.
Dims each(std::string_view op, std::string_view name, IntList list, size_t spatial, int64_t least);

/// Checks rank and dtype of the input.
void check_input(std::string_view op, const Tensor& self, size_t spatial);
/// Checks that only the batch has size 0.
void check_not_empty(std::string_view op, const Tensor& self, size_t spatial);
/// Sizes of the result. Checks the input, and that every window reads an element.
Dims pooled_sizes(std::string_view op, const Tensor& self, size_t spatial, const Windows& w,
                  bool ceil_mode);
/// Checks a gradient of a result of `sizes`.
void check_gradient(std::string_view op, const Tensor& grad_output, const Tensor& self,
                    IntList sizes);
/// A result in the input's memory format if `keeps_format`; ATen's averages over three dimensions
/// are always row-major.
Outputs like_input(IntList sizes, const Tensor& self, bool keeps_format = true);

}  // namespace lockstep::rules
