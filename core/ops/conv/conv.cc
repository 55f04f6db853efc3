#include "core/ops/conv/conv.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/conv/conv_rules.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/image/pad.h"
#include "core/ops/matmul/batching_products.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"

namespace lockstep {

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
    const int64_t total = at(dilation, i) * (weight.size(i + 2) - 1);
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
