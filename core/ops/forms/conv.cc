#include "core/ops/forms/conv.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

const Tensor& col2im_out(const Tensor& out, const Tensor& self, IntList output_size,
                         IntList kernel_size, IntList dilation, IntList padding, IntList stride) {
  return form<const Tensor&(const Tensor&, IntList, IntList, IntList, IntList, IntList, const Tensor&), "col2im.out">()(self, output_size, kernel_size, dilation, padding, stride, out);
}
Tensor conv1d(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
              std::string_view padding, IntList dilation, int64_t groups) {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, IntList, std::string_view, IntList, int64_t), "conv1d.padding">()(input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
              std::string_view padding, IntList dilation, int64_t groups) {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, IntList, std::string_view, IntList, int64_t), "conv2d.padding">()(input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
              std::string_view padding, IntList dilation, int64_t groups) {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, IntList, std::string_view, IntList, int64_t), "conv3d.padding">()(input, weight, bias, stride, padding, dilation, groups);
}
const Tensor& convolution_out(const Tensor& out, const Tensor& input, const Tensor& weight,
                              OptionalTensor bias, IntList stride, IntList padding,
                              IntList dilation, bool transposed, IntList output_padding,
                              int64_t groups) {
  return form<const Tensor&(const Tensor&, const Tensor&, OptionalTensor, IntList, IntList, IntList, bool, IntList, int64_t, const Tensor&), "convolution.out">()(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, out);
}
const Tensor& im2col_out(const Tensor& out, const Tensor& self, IntList kernel_size,
                         IntList dilation, IntList padding, IntList stride) {
  return form<const Tensor&(const Tensor&, IntList, IntList, IntList, IntList, const Tensor&), "im2col.out">()(self, kernel_size, dilation, padding, stride, out);
}

}  // namespace lockstep
