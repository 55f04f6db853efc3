#include "core/ops/conv/conv.h"

#include <optional>

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/image/pad.h"
#include "core/ops/matmul/batching_products.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/rule_outputs.h"
#include "core/ops/view/view.h"
#include "core/tensor/memory_format.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
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
  const int64_t channels =
      transposed ? weight.size(0) : (CheckedInt(op, weight.size(1)) * groups).value();
  LS_CHECK(input.size(1) == channels, ShapeError,
           "[{}] weight {} with {} groups belongs to {} channels, got input {}.", op,
           weight.shape(), groups, channels, input.shape());
  const int64_t features =
      transposed ? (CheckedInt(op, weight.size(1)) * groups).value() : weight.size(0);
  Dims sizes{input.size(0), features};
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t in = input.size(i + 2);
    const int64_t kernel = weight.size(i + 2);
    LS_CHECK(kernel >= 1, ShapeError, "[{}] expected a kernel without empty dimensions, got {}.",
             op, weight.shape());
    const int64_t step = number_of(stride, i);
    const CheckedInt pads = CheckedInt(op, number_of(padding, i)) * 2;
    const int64_t reach = (CheckedInt(op, number_of(dilation, i)) * (kernel - 1) + 1).value();
    const int64_t padded = (pads + in).value();
    const int64_t extra = number_of(output_padding, i);
    int64_t out = 0;
    if (transposed) {
      LS_CHECK(extra < step || extra < number_of(dilation, i), ShapeError,
               "[{}] expected output_padding smaller than stride or dilation, got {}.", op,
               to_string(output_padding));
      out = (CheckedInt(op, step) * (in - 1) - pads + reach + extra).value();
    } else {
      out = padded < reach ? 0 : (padded - reach) / step + 1;
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

}  // namespace
}  // namespace rules

namespace {

using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

/// The non-tensor arguments of a convolution, read in its derivative.
struct Settings {
  IntList stride;
  IntList padding;
  IntList dilation;
  bool transposed;
  IntList output_padding;
  int64_t groups;

  /// `first` is the index of `stride` in the operator's schema.
  Settings(const VjpContext& ctx, size_t first)
      : stride(ctx.argument<IntList>(first)),
        padding(ctx.argument<IntList>(first + 1)),
        dilation(ctx.argument<IntList>(first + 2)),
        transposed(ctx.argument<bool>(first + 3)),
        output_padding(ctx.argument<IntList>(first + 4)),
        groups(ctx.argument<int64_t>(first + 5)) {}

  Tensor forward(const Tensor& input, const Tensor& weight) const {
    return convolution(input, weight, {}, stride, padding, dilation, transposed, output_padding,
                       groups);
  }
  ThreeTensors backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                        BoolList mask) const {
    return convolution_backward(grad, input, weight, std::nullopt, stride, padding, dilation,
                                transposed, output_padding, groups, mask);
  }
};

/// `bias` [features] viewed with `rank` dimensions, so that it broadcasts with the result.
Tensor along_features(const Tensor& bias, int64_t rank) {
  Dims sizes(static_cast<size_t>(rank), 1);
  sizes[1] = bias.numel();
  return bias.view(sizes);
}

Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

Tensor convolve(std::string_view op, int64_t spatial, const Tensor& input, const Tensor& weight,
                OptionalTensor bias, IntList stride, IntList padding, IntList dilation,
                bool transposed, IntList output_padding, int64_t groups) {
  LS_CHECK(input.dim() == spatial + 1 || input.dim() == spatial + 2, ShapeError,
           "[{}] expected input [channels, spatial...] or [batch, channels, spatial...] with {} "
           "spatial dimensions, got shape {}.",
           op, spatial, input.shape());
  LS_CHECK(weight.dim() == spatial + 2, ShapeError,
           "[{}] expected a weight of {} dimensions, got shape {}.", op, spatial + 2,
           weight.shape());
  const bool batched = input.dim() == spatial + 2;
  const Tensor result = convolution(batched ? input : input.unsqueeze(0), weight, bias, stride,
                                    padding, dilation, transposed, output_padding, groups);
  return batched ? result : result.squeeze(0);
}

/// Stride, padding or dilation of spatial dimension `i`; the list holds one number for all or one
/// for each.
int64_t at(IntList list, int64_t i) { return list.size() == 1 ? list[0] : list[i]; }

/// `padding` is "valid" (none) or "same": the result has the input's spatial sizes, and odd padding
/// puts the extra element after the input.
Tensor convolve(std::string_view op, int64_t spatial, const Tensor& input, const Tensor& weight,
                OptionalTensor bias, IntList stride, std::string_view padding, IntList dilation,
                int64_t groups) {
  LS_CHECK(padding == "valid" || padding == "same", Error,
           "[{}] unknown padding: expected \"valid\" or \"same\", got \"{}\".", op, padding);
  Dims before(static_cast<size_t>(spatial), 0);
  if (padding == "valid") {
    return convolve(op, spatial, input, weight, bias, stride, before, dilation, false, {0}, groups);
  }
  LS_CHECK(weight.dim() == spatial + 2, ShapeError,
           "[{}] expected a weight of {} dimensions, got shape {}.", op, spatial + 2,
           weight.shape());
  Dims behind(static_cast<size_t>(2 * spatial), 0);  // (before, after), the last dimension first
  bool uneven = false;
  for (int64_t i = 0; i < spatial; ++i) {
    LS_CHECK(at(stride, i) == 1, ShapeError,
             "[{}] padding \"same\" needs a stride of 1, got {}. Give the padding in numbers.", op,
             to_string(stride));
    const int64_t total = (CheckedInt(op, at(dilation, i)) * (weight.size(i + 2) - 1)).value();
    before[static_cast<size_t>(i)] = total / 2;
    behind[static_cast<size_t>(2 * (spatial - 1 - i) + 1)] = total % 2;
    uneven |= total % 2 != 0;
  }
  return convolve(op, spatial, uneven ? constant_pad_nd(input, behind) : input, weight, bias,
                  stride, before, dilation, false, {0}, groups);
}

/// FLOPs of a convolution: each element of `side` is multiplied with one filter. `side` is the
/// result, or the input of a transposed convolution.
int64_t filter_flops(const Tensor& side, const Tensor& weight) {
  return 2 * side.numel() * (weight.numel() / std::max<int64_t>(weight.size(0), 1));
}
int64_t forward_flops(std::span<const Value> arguments, std::span<const Value> results) {
  const bool transposed = arguments[6].to_bool();
  return filter_flops((transposed ? arguments : results)[0].tensor(), arguments[1].tensor());
}
/// The gradients of input and weight take as many FLOPs each as the forward pass.
int64_t backward_flops(std::span<const Value> arguments, std::span<const Value>) {
  const bool transposed = arguments[7].to_bool();
  const BoolList mask = arguments[10].to_bool_list();
  return ((mask[0] ? 1 : 0) + (mask[1] ? 1 : 0)) *
         filter_flops(arguments[transposed ? 1 : 0].tensor(), arguments[2].tensor());
}

}  // namespace

LS_OP(convolution,
      Tensor(const Tensor&, const Tensor&, OptionalTensor, IntList, IntList, IntList, bool, IntList,
             int64_t),
      "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
      "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor")
    .doc("Convolution, or transposed convolution, over one to three spatial dimensions.")
    .structured(rules::convolution)
    .batching(batching::convolution)
    .out()
    .autocast(Autocast::kLowerPrecision)
    .flops(forward_flops)
    .saves({"input", "weight"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      auto [dx, dw, db] = Settings(ctx, 3).backward(
          grad, ctx.saved(0), ctx.saved(1), BoolList{ctx.needs(0), ctx.needs(1), ctx.needs(2)});
      return Gradients{dx, dw, db};
    });
Tensor convolution(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                   IntList padding, IntList dilation, bool transposed, IntList output_padding,
                   int64_t groups) {
  return op_convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                        groups);
}

LS_OP(convolution_backward,
      ThreeTensors(const Tensor&, const Tensor&, const Tensor&, std::optional<IntList>, IntList,
                   IntList, IntList, bool, IntList, int64_t, BoolList),
      "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
      "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] "
      "output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
    .doc("Gradients of a convolution's input, weight and bias.")
    .structured(rules::convolution_backward)
    .batching(batching::convolution_backward)
    .flops(backward_flops)
    .saves({"grad_output", "input", "weight"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      // Each gradient is linear in grad_output and in the other argument, so the second derivative
      // with respect to one argument is the same convolution with the cotangent in its place.
      const Settings settings(ctx, 4);
      const Tensor& grad = ctx.saved(0);
      Gradients gradients(ctx.input_count());
      if (ctx.needs(0)) {
        Tensor result;
        if (grads[0].defined()) result = settings.forward(grads[0], ctx.saved(2));
        if (grads[1].defined()) result = plus(result, settings.forward(ctx.saved(1), grads[1]));
        if (grads[2].defined()) {
          result = plus(result, along_features(grads[2], grad.dim()).expand(grad.sizes()));
        }
        gradients[0] = result;
      }
      if (ctx.needs(1) && grads[1].defined()) {
        gradients[1] = std::get<0>(
            settings.backward(grad, ctx.saved(1), grads[1], BoolList{true, false, false}));
      }
      if (ctx.needs(2) && grads[0].defined()) {
        gradients[2] = std::get<1>(
            settings.backward(grad, grads[0], ctx.saved(2), BoolList{false, true, false}));
      }
      return gradients;
    });
std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad_output, const Tensor& input, const Tensor& weight,
    std::optional<IntList> bias_sizes, IntList stride, IntList padding, IntList dilation,
    bool transposed, IntList output_padding, int64_t groups, BoolList output_mask) {
  return op_convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation,
                                 transposed, output_padding, groups, output_mask);
}

LS_OP(convolution_backward_out,
      ThreeTensors(const Tensor&, const Tensor&, const Tensor&, std::optional<IntList>, IntList,
                   IntList, IntList, bool, IntList, int64_t, BoolList, const Tensor&, const Tensor&,
                   const Tensor&),
      "convolution_backward.out(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? "
      "bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] "
      "output_padding, SymInt groups, bool[3] output_mask, *, Tensor(a!) out0, Tensor(b!) out1, "
      "Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))")
    .doc("convolution_backward, written into out0, out1 and out2.")
    .composite([](const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                  std::optional<IntList> bias_sizes, IntList stride, IntList padding,
                  IntList dilation, bool transposed, IntList output_padding, int64_t groups,
                  BoolList output_mask, const Tensor& out0, const Tensor& out1,
                  const Tensor& out2) {
      return write_results(
          op_convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation,
                                  transposed, output_padding, groups, output_mask),
          out0, out1, out2);
    });

using Conv = Tensor(const Tensor&, const Tensor&, OptionalTensor, IntList, IntList, IntList,
                    int64_t);

LS_OP(conv1d, Conv,
      "conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] "
      "padding=0, SymInt[1] dilation=1, SymInt groups=1) -> Tensor")
    .doc("Convolution over one spatial dimension; the batch dimension is optional.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                  IntList padding, IntList dilation, int64_t groups) {
      return convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, false, {0},
                      groups);
    });
Tensor conv1d(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
              IntList padding, IntList dilation, int64_t groups) {
  return op_conv1d(input, weight, bias, stride, padding, dilation, groups);
}

LS_OP(conv2d, Conv,
      "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] "
      "padding=0, SymInt[2] dilation=1, SymInt groups=1) -> Tensor")
    .doc("Convolution over two spatial dimensions; the batch dimension is optional.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                  IntList padding, IntList dilation, int64_t groups) {
      return convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, false, {0},
                      groups);
    });
Tensor conv2d(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
              IntList padding, IntList dilation, int64_t groups) {
  return op_conv2d(input, weight, bias, stride, padding, dilation, groups);
}

LS_OP(conv3d, Conv,
      "conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] "
      "padding=0, SymInt[3] dilation=1, SymInt groups=1) -> Tensor")
    .doc("Convolution over three spatial dimensions; the batch dimension is optional.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                  IntList padding, IntList dilation, int64_t groups) {
      return convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, false, {0},
                      groups);
    });
Tensor conv3d(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
              IntList padding, IntList dilation, int64_t groups) {
  return op_conv3d(input, weight, bias, stride, padding, dilation, groups);
}

using ConvByName = Tensor(const Tensor&, const Tensor&, OptionalTensor, IntList, std::string_view,
                          IntList, int64_t);

LS_OP(conv1d_padded, ConvByName,
      "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, str "
      "padding=\"valid\", SymInt[1] dilation=1, SymInt groups=1) -> Tensor")
    .doc("Convolution over one spatial dimension with padding \"valid\" or \"same\".")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                  std::string_view padding, IntList dilation, int64_t groups) {
      return convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups);
    });

LS_OP(conv2d_padded, ConvByName,
      "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str "
      "padding=\"valid\", SymInt[2] dilation=1, SymInt groups=1) -> Tensor")
    .doc("Convolution over two spatial dimensions with padding \"valid\" or \"same\".")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                  std::string_view padding, IntList dilation, int64_t groups) {
      return convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups);
    });

LS_OP(conv3d_padded, ConvByName,
      "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, str "
      "padding=\"valid\", SymInt[3] dilation=1, SymInt groups=1) -> Tensor")
    .doc("Convolution over three spatial dimensions with padding \"valid\" or \"same\".")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                  std::string_view padding, IntList dilation, int64_t groups) {
      return convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, groups);
    });

using ConvTranspose = Tensor(const Tensor&, const Tensor&, OptionalTensor, IntList, IntList,
                             IntList, int64_t, IntList);

LS_OP(conv_transpose1d, ConvTranspose,
      "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, "
      "SymInt[1] padding=0, SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> "
      "Tensor")
    .doc("Transposed convolution over one spatial dimension; the batch dimension is optional.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                  IntList padding, IntList output_padding, int64_t groups, IntList dilation) {
      return convolve("conv_transpose1d", 1, input, weight, bias, stride, padding, dilation, true,
                      output_padding, groups);
    });
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, OptionalTensor bias,
                        IntList stride, IntList padding, IntList output_padding, int64_t groups,
                        IntList dilation) {
  return op_conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups,
                             dilation);
}

LS_OP(conv_transpose2d, ConvTranspose,
      "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, "
      "SymInt[2] padding=0, SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> "
      "Tensor")
    .doc("Transposed convolution over two spatial dimensions; the batch dimension is optional.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                  IntList padding, IntList output_padding, int64_t groups, IntList dilation) {
      return convolve("conv_transpose2d", 2, input, weight, bias, stride, padding, dilation, true,
                      output_padding, groups);
    });
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, OptionalTensor bias,
                        IntList stride, IntList padding, IntList output_padding, int64_t groups,
                        IntList dilation) {
  return op_conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups,
                             dilation);
}

LS_OP(conv_transpose3d, ConvTranspose,
      "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, "
      "SymInt[3] padding=0, SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] dilation=1) -> "
      "Tensor")
    .doc("Transposed convolution over three spatial dimensions; the batch dimension is optional.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                  IntList padding, IntList output_padding, int64_t groups, IntList dilation) {
      return convolve("conv_transpose3d", 3, input, weight, bias, stride, padding, dilation, true,
                      output_padding, groups);
    });
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, OptionalTensor bias,
                        IntList stride, IntList padding, IntList output_padding, int64_t groups,
                        IntList dilation) {
  return op_conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups,
                             dilation);
}

}  // namespace lockstep
