// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::col2im(IntList output_size, IntList kernel_size, IntList dilation, IntList padding,
                      IntList stride) const {
  return form<Tensor(const Tensor&, IntList, IntList, IntList, IntList, IntList), "col2im">()(*this, output_size, kernel_size, dilation, padding, stride);
}
Tensor Tensor::im2col(IntList kernel_size, IntList dilation, IntList padding,
                      IntList stride) const {
  return form<Tensor(const Tensor&, IntList, IntList, IntList, IntList), "im2col">()(*this, kernel_size, dilation, padding, stride);
}

}  // namespace lockstep
