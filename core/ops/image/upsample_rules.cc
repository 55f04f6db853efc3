#include "core/ops/image/upsample_rules.h"

#include "core/base/check.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep::rules {

namespace {

/// Shape of images of shape `input` resampled to `output_size`.
Dims resampled_sizes(std::string_view op, IntList input, IntList output_size) {
  const bool image = input.size() == 4 && input[1] > 0 && input[2] > 0 && input[3] > 0;
  LS_CHECK(image, ShapeError,
           "[{}] expected images [N, C, H, W] with channels and pixels, got shape {}.", op,
           to_string(input));
  LS_CHECK(output_size.size() == 2 && output_size[0] > 0 && output_size[1] > 0, ShapeError,
           "[{}] expected two positive numbers for output_size, got {}.", op,
           to_string(output_size));
  return {input[0], input[1], output_size[0], output_size[1]};
}

void require_floating(std::string_view op, const Tensor& tensor) {
  LS_CHECK(is_floating(tensor.dtype()), DTypeError,
           "[{}] expected a floating dtype, got {}. Cast it with to(dtype).", op,
           to_string(tensor));
}

Outputs forward(std::string_view op, const Tensor& self, IntList output_size) {
  LS_CHECK(is_floating(self.dtype()) || self.dtype() == DType::kU8, DTypeError,
           "[{}] expected a floating dtype or uint8, got {}. Cast it with to(dtype).", op,
           to_string(self));
  Outputs outputs = one(resampled_sizes(op, self.sizes(), output_size), self.dtype());
  keep_format(outputs.specs[0], self);
  return outputs;
}

Outputs backward(std::string_view op, const Tensor& grad, IntList output_size, IntList input_size) {
  require_floating(op, grad);
  const Dims sizes = resampled_sizes(op, input_size, output_size);
  LS_CHECK(same(grad.sizes(), sizes), ShapeError,
           "[{}] the gradient does not fit: expected shape {}, got {}.", op, to_string(sizes),
           grad.shape());
  Outputs outputs = one(input_size, grad.dtype());
  keep_format(outputs.specs[0], grad);
  return outputs;
}

}  // namespace

Outputs upsample_nearest2d(const Tensor& self, IntList output_size, std::optional<double>,
                           std::optional<double>) {
  return forward("upsample_nearest2d", self, output_size);
}

Outputs upsample_nearest2d_backward(const Tensor& grad_output, IntList output_size,
                                    IntList input_size, std::optional<double>,
                                    std::optional<double>) {
  return backward("upsample_nearest2d_backward", grad_output, output_size, input_size);
}

Outputs upsample_smooth2d(const Tensor& self, IntList output_size, bool, std::optional<double>,
                          std::optional<double>) {
  return forward("upsample_bilinear2d/bicubic2d", self, output_size);
}

Outputs upsample_smooth2d_backward(const Tensor& grad_output, IntList output_size,
                                   IntList input_size, bool, std::optional<double>,
                                   std::optional<double>) {
  return backward("upsample_bilinear2d/bicubic2d_backward", grad_output, output_size, input_size);
}

}  // namespace lockstep::rules
