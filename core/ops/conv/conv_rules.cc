#include "core/ops/conv/conv_rules.h"

#include "core/base/check.h"
#include "core/tensor/memory_format.h"

namespace lockstep::rules {

namespace {

/// Entry `i` of a list with one number per spatial dimension, or one for all.
int64_t number_of(IntList list, int64_t i) {
  return list.size() == 1 ? list[0] : list[static_cast<size_t>(i)];
}

void check_list(std::string_view op, std::string_view name, IntList list, int64_t spatial,
                int64_t least) {
  LS_CHECK(list.size() == 1 || static_cast<int64_t>(list.size()) == spatial, ShapeError,
           "[{}] expected one {}, or one for each of {} spatial dimensions, got {}.", op, name,
           spatial, to_string(list));
  for (const int64_t number : list) {
    LS_CHECK(number >= least, ShapeError, "[{}] expected {} of at least {}, got {}.", op, name,
             least, to_string(list));
  }
}

void check_dtypes(std::string_view op, const Tensor& input, const Tensor& other,
                  std::string_view name) {
  LS_CHECK(other.dtype() == input.dtype(), DTypeError,
           "[{}] dtypes of input and {} differ: expected {}, got {}. Cast one with to(dtype).", op,
           name, to_string(input.dtype()), to_string(other.dtype()));
}

/// Checks everything but bias and gradient and returns the result's shape.
Dims result_shape(std::string_view op, const Tensor& input, const Tensor& weight, IntList stride,
                  IntList padding, IntList dilation, bool transposed, IntList output_padding,
                  int64_t groups) {
  const int64_t spatial = weight.dim() - 2;
  LS_CHECK(spatial >= 1 && spatial <= 3, ShapeError,
           "[{}] expected a weight of one to three spatial dimensions, got shape {}.", op,
           weight.shape());
  LS_CHECK(input.dim() == weight.dim(), ShapeError,
           "[{}] expected input and weight to have as many dimensions, got shapes {} and {}.", op,
           input.shape(), weight.shape());
  LS_CHECK(input.dtype() != DType::kBool, DTypeError, "[{}] expected numbers, got bool.", op);
  check_dtypes(op, input, weight, "weight");
  check_list(op, "stride", stride, spatial, 1);
  check_list(op, "padding", padding, spatial, 0);
  check_list(op, "dilation", dilation, spatial, 1);
  check_list(op, "output_padding", output_padding, spatial, 0);
  LS_CHECK(groups >= 1 && weight.size(0) % groups == 0, ShapeError,
           "[{}] expected a number of groups that divides the weight's first size, got {} groups "
           "and weight {}.",
           op, groups, weight.shape());
  LS_CHECK(weight.size(0) > 0 && (!transposed || weight.size(1) > 0), ShapeError,
           "[{}] a convolution has at least one output channel, got weight {}.", op,
           weight.shape());
  const int64_t channels = transposed ? weight.size(0) : weight.size(1) * groups;
  LS_CHECK(input.size(1) == channels, ShapeError,
           "[{}] weight {} with {} groups belongs to {} channels, got input {}.", op,
           weight.shape(), groups, channels, input.shape());
  Dims sizes{input.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t in = input.size(i + 2);
    const int64_t kernel = weight.size(i + 2);
    LS_CHECK(kernel >= 1, ShapeError, "[{}] expected a kernel without empty dimensions, got {}.",
             op, weight.shape());
    const int64_t step = number_of(stride, i);
    const int64_t pads = 2 * number_of(padding, i);
    const int64_t reach = number_of(dilation, i) * (kernel - 1) + 1;
    const int64_t extra = number_of(output_padding, i);
    int64_t out = 0;
    if (transposed) {
      LS_CHECK(extra < step || extra < number_of(dilation, i), ShapeError,
               "[{}] expected output_padding smaller than stride or dilation, got {}.", op,
               to_string(output_padding));
      out = (in - 1) * step - pads + reach + extra;
    } else {
      out = in + pads < reach ? 0 : (in + pads - reach) / step + 1;
    }
    LS_CHECK(out >= 1, ShapeError,
             "[{}] nothing is left of spatial dimension {}: input {} with padding {} and a kernel "
             "that reaches over {}. Pad more or use a smaller kernel.",
             op, i, in, number_of(padding, i), reach);
    sizes.push_back(out);
  }
  return sizes;
}

bool suggests_channels_last(const Tensor& tensor) {
  return lockstep::suggests_channels_last(tensor.sizes(), tensor.strides());
}

/// Strides of the result: channels-last if either tensor suggests it.
std::optional<Dims> strides_like(const Tensor& input, const Tensor& weight, IntList sizes) {
  if (!suggests_channels_last(input) && !suggests_channels_last(weight)) return std::nullopt;
  return channels_last_strides(sizes);
}

void add_output(Outputs& outputs, IntList sizes, DType dtype, bool present) {
  OutputSpec& spec = outputs.specs.emplace_back();
  spec.sizes = to_dims(sizes);
  spec.dtype = dtype;
  spec.present = present;
}

}  // namespace

Outputs convolution(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                    IntList padding, IntList dilation, bool transposed, IntList output_padding,
                    int64_t groups) {
  constexpr std::string_view kName = "convolution";
  const Dims sizes = result_shape(kName, input, weight, stride, padding, dilation, transposed,
                                  output_padding, groups);
  if (bias) {
    LS_CHECK(bias->dim() == 1 && bias->size(0) == sizes[1], ShapeError,
             "[{}] expected a bias for each feature, shape [{}], got {}.", kName, sizes[1],
             bias->shape());
    check_dtypes(kName, input, *bias, "bias");
  }
  Outputs outputs = one(sizes, input.dtype());
  outputs.specs[0].strides = strides_like(input, weight, sizes);
  return outputs;
}

Outputs convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                             std::optional<IntList>, IntList stride, IntList padding,
                             IntList dilation, bool transposed, IntList output_padding,
                             int64_t groups, BoolList output_mask) {
  constexpr std::string_view kName = "convolution_backward";
  const Dims sizes = result_shape(kName, input, weight, stride, padding, dilation, transposed,
                                  output_padding, groups);
  LS_CHECK(is_floating(input.dtype()), DTypeError, "[{}] expected a floating input, got {}.", kName,
           to_string(input.dtype()));
  LS_CHECK(same(grad_output.sizes(), sizes), ShapeError,
           "[{}] the gradient has the wrong shape: expected {}, got {}.", kName, to_string(sizes),
           grad_output.shape());
  check_dtypes(kName, input, grad_output, "gradient");
  Outputs outputs;
  add_output(outputs, input.sizes(), input.dtype(), output_mask[0]);
  add_output(outputs, weight.sizes(), weight.dtype(), output_mask[1]);
  outputs.specs[0].strides = strides_like(input, weight, input.sizes());
  outputs.specs[1].strides = strides_like(input, weight, weight.sizes());
  add_output(outputs, Dims{sizes[1]}, weight.dtype(), output_mask[2]);
  return outputs;
}

}  // namespace lockstep::rules
