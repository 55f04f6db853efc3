#include "kernels/common/conv_problem.h"

namespace lockstep {

namespace {

/// Expands the list to one number per spatial dimension; a single number applies to all.
Dims each(IntList list, size_t rank) {
  return list.size() == rank ? to_dims(list) : Dims(rank, list[0]);
}

}  // namespace

ConvProblem make_conv_problem(const TensorArg& input, const TensorArg& weight,
                              const TensorArg& output, IntList stride, IntList padding,
                              IntList dilation, bool transposed, int64_t groups) {
  const TensorArg& image = transposed ? output : input;
  const TensorArg& map = transposed ? input : output;
  ConvProblem p;
  p.dtype = input.dtype;
  p.batch = input.size(0);
  p.groups = groups;
  p.channels = image.size(1);
  p.features = map.size(1);
  p.image = to_dims(image.sizes().subspan(2));
  p.kernel = to_dims(weight.sizes().subspan(2));
  p.map = to_dims(map.sizes().subspan(2));
  p.stride = each(stride, p.rank());
  p.padding = each(padding, p.rank());
  p.dilation = each(dilation, p.rank());
  // With one place the stride does not matter, and with one element in the kernel the dilation does
  // not. Kept within the padded image, neither overflows in the arithmetic of the kernels.
  for (size_t i = 0; i < p.rank(); ++i) {
    const int64_t padded = p.image[i] + 2 * p.padding[i];
    p.stride[i] = std::min(p.stride[i], std::max<int64_t>(padded, 1));
    p.dilation[i] = std::min(p.dilation[i], std::max<int64_t>(padded, 1));
  }
  return p;
}

}  // namespace lockstep
