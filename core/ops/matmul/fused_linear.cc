#include "core/ops/matmul/fused_linear.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/as_dtype.h"
#include "core/ops/matmul/batching_fused_linear.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/norm_projection.h"
#include "core/ops/pointwise/activation_curvature.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
namespace {

/// Sizes of input [..., in] times weight [out, in] transposed.
Dims product_sizes(std::string_view op, const Tensor& input, const Tensor& weight) {
  LS_CHECK(input.dim() > 0 && weight.dim() == 2, ShapeError,
           "[{}] expected an input [..., in] and a weight [out, in], got shapes {} and {}.", op,
           input.shape(), weight.shape());
  LS_CHECK(input.size(-1) == weight.size(1), ShapeError,
           "[{}] the last sizes of input and weight differ: {} and {}. The weight is [out, in].",
           op, input.shape(), weight.shape());
  LS_CHECK(is_floating(input.dtype()) && input.dtype() == weight.dtype(), DTypeError,
           "[{}] expected input and weight of one floating dtype, got {} and {}. Cast one with "
           "to(dtype).",
           op, to_string(input.dtype()), to_string(weight.dtype()));
  Dims sizes = to_dims(input.sizes());
  sizes.back() = weight.size(0);
  return sizes;
}

void check_bias(std::string_view op, OptionalTensor bias, const Tensor& weight, DType dtype) {
  if (!bias) return;
  LS_CHECK(bias->dim() == 1 && bias->size(0) == weight.size(0), ShapeError,
           "[{}] expected a bias of shape [{}], got {}.", op, weight.size(0), bias->shape());
  LS_CHECK(bias->dtype() == dtype, DTypeError,
           "[{}] expected a bias of the result's dtype {}, got {}. Cast it with to(dtype).", op,
           to_string(dtype), to_string(bias->dtype()));
}

/// The result of adding a product of `sizes` to a residual; it has the residual's sizes and dtype.
Outputs sum_with(std::string_view op, const Tensor& residual, IntList sizes, DType factors) {
  LS_CHECK(same(residual.sizes(), sizes), ShapeError,
           "[{}] expected a residual of the product's shape {}, got {}.", op, to_string(sizes),
           residual.shape());
  const DType dtype = residual.dtype();
  LS_CHECK(dtype == factors || (dtype == DType::kF32 && size_of(factors) == 2), DTypeError,
           "[{}] expected a residual of the factors' dtype {}, or float32 beside halves, got {}. "
           "Cast it with to(dtype).",
           op, to_string(factors), to_string(dtype));
  return one(sizes, dtype);
}

/// Checks that `of`, the gelu's argument, has the gelu's sizes and dtype.
void check_of(std::string_view op, const Tensor& of, IntList sizes, DType dtype) {
  LS_CHECK(same(of.sizes(), sizes) && of.dtype() == dtype, ShapeError,
           "[{}] expected the gelu's argument to be {} {}, got {} {}.", op, to_string(dtype),
           to_string(sizes), to_string(of.dtype()), of.shape());
}

Outputs linear_gelu(const Tensor& input, const Tensor& weight, OptionalTensor bias) {
  constexpr std::string_view kName = "linear_gelu";
  Outputs outputs = one(product_sizes(kName, input, weight), input.dtype());
  check_bias(kName, bias, weight, input.dtype());
  outputs.specs.push_back(outputs.specs[0]);
  return outputs;
}

Outputs linear_add(const Tensor& residual, const Tensor& input, const Tensor& weight,
                   OptionalTensor bias) {
  constexpr std::string_view kName = "linear_add";
  const Dims sizes = product_sizes(kName, input, weight);
  check_bias(kName, bias, weight, residual.dtype());
  return sum_with(kName, residual, sizes, input.dtype());
}

Outputs linear_of_gelu(const Tensor& value, const Tensor& of, const Tensor& weight,
                       OptionalTensor bias, OptionalTensor residual) {
  constexpr std::string_view kName = "linear_of_gelu";
  const Dims sizes = product_sizes(kName, value, weight);
  check_of(kName, of, value.sizes(), value.dtype());
  check_bias(kName, bias, weight, residual ? residual->dtype() : value.dtype());
  return residual ? sum_with(kName, *residual, sizes, value.dtype()) : one(sizes, value.dtype());
}

Outputs linear_of_gelu_backward(const Tensor& grad_output, const Tensor& weight, const Tensor& of) {
  constexpr std::string_view kName = "linear_of_gelu_backward";
  LS_CHECK(grad_output.dim() > 0 && weight.dim() == 2 && grad_output.size(-1) == weight.size(0),
           ShapeError,
           "[{}] expected a gradient [..., out] and a weight [out, in], got shapes {} and {}.",
           kName, grad_output.shape(), weight.shape());
  LS_CHECK(is_floating(weight.dtype()) && grad_output.dtype() == weight.dtype(), DTypeError,
           "[{}] expected gradient and weight of one floating dtype, got {} and {}.", kName,
           to_string(grad_output.dtype()), to_string(weight.dtype()));
  Dims sizes = to_dims(grad_output.sizes());
  sizes.back() = weight.size(1);
  check_of(kName, of, sizes, weight.dtype());
  return one(sizes, weight.dtype());
}

Outputs linear_parameters_backward(const Tensor& grad_output, const Tensor& input) {
  constexpr std::string_view kName = "linear_parameters_backward";
  LS_CHECK(grad_output.dim() == 2 && input.dim() == 2 && grad_output.size(0) == input.size(0),
           ShapeError,
           "[{}] expected a gradient [rows, out] and an input [rows, in], got shapes {} and {}.",
           kName, grad_output.shape(), input.shape());
  LS_CHECK(is_floating(input.dtype()) && grad_output.dtype() == input.dtype(), DTypeError,
           "[{}] expected gradient and input of one floating dtype, got {} and {}.", kName,
           to_string(grad_output.dtype()), to_string(input.dtype()));
  Outputs outputs = one({grad_output.size(1), input.size(1)}, input.dtype());
  outputs.specs.push_back(one({grad_output.size(1)}, input.dtype()).specs[0]);
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;

constexpr std::string_view kTanh = "tanh";

/// Whether the kernel can add a product of such factors to the residual in one pass.
bool can_add_to(const Tensor& residual, DType factors) {
  const bool widens = residual.dtype() == DType::kF32 && size_of(factors) == 2;
  return widens || residual.dtype() == factors;
}

/// [..., n] -> [rows, n].
Tensor rows_of(const Tensor& tensor) {
  if (tensor.dim() == 2) return tensor;
  const int64_t rows = count_elements(tensor.sizes().first(static_cast<size_t>(tensor.dim() - 1)));
  return tensor.reshape({rows, tensor.size(-1)});
}

/// The gradient of the input [..., in] of a product with `weight`, given the product's gradient;
/// written to `memory` if that is defined.
Tensor input_gradient(const Tensor& grad, const Tensor& weight, const Tensor& memory = {}) {
  if (memory.defined()) {
    mm_out(rows_of(memory), rows_of(grad), weight);
    return memory;
  }
  Dims sizes = to_dims(grad.sizes());
  sizes.back() = weight.size(1);
  return mm(rows_of(grad), weight).view(sizes);
}

/// linear_of_gelu_backward, written to `memory` if that is defined.
Tensor argument_gradient(const Tensor& grad, const Tensor& weight, const Tensor& of,
                         const Tensor& memory) {
  if (memory.defined()) return linear_of_gelu_backward_out(memory, grad, weight, of);
  return linear_of_gelu_backward(grad, weight, of);
}

/// The gradients of the weight, argument `i`, and of the bias, which follows it, given that of the
/// product. Together they are one operator, unless the weight's has a destination. The product's
/// input is the first saved tensor.
class ParameterGradients {
 public:
  ParameterGradients(VjpContext& ctx, size_t i, const Tensor& grad)
      : ctx_(ctx), i_(i), grad_(grad), weight_(ctx.needs(i) ? make_weight() : Tensor()) {}

  const Tensor& weight() const { return weight_; }
  Tensor bias() const { return ctx_.unbroadcast(bias_.defined() ? bias_ : rows_of(grad_), i_ + 1); }
  /// Memory for a gradient with the geometry of the input, which nothing reads any more: that of
  /// the input. Undefined where something else may read it.
  Tensor memory_of_input() const {
    return ctx_.saved(0).defined() && ctx_.saved(0).is_contiguous() ? ctx_.take_saved(0) : Tensor();
  }

 private:
  Tensor make_weight() {
    const Tensor rows = rows_of(ctx_.saved(0));
    const Tensor destination = ctx_.destination(i_);
    if (destination.defined()) return mm_out(destination, rows_of(grad_).t(), rows);
    if (!ctx_.needs(i_ + 1)) return mm(rows_of(grad_).t(), rows);
    LinearParameters both = linear_parameters_backward(rows_of(grad_), rows);
    bias_ = std::move(both.bias);
    return both.weight;
  }

  VjpContext& ctx_;
  size_t i_;
  const Tensor& grad_;
  Tensor bias_;
  Tensor weight_;  ///< made after `bias_`, which it may set
};

/// FLOPs of the product of arguments `input` and `weight`.
template <size_t input, size_t weight>
int64_t linear_flops(std::span<const Value> arguments, std::span<const Value>) {
  return 2 * arguments[input].tensor().numel() * arguments[weight].tensor().size(0);
}

}  // namespace

LS_OP(linear_parameters_backward, TwoTensors(const Tensor&, const Tensor&),
      "linear_parameters_backward(Tensor grad_output, Tensor input) -> (Tensor, Tensor)")
    .doc("grad_output [rows, out] transposed times input [rows, in], and grad_output's sums.")
    .structured(rules::linear_parameters_backward)
    .batching(batching::linear_parameters_backward)
    .flops([](std::span<const Value> arguments, std::span<const Value>) {
      return 2 * arguments[0].tensor().numel() * arguments[1].tensor().size(1);
    })
    .saves({"grad_output for input", "input for grad_output"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      return ctx.gradients(
          [&] {
            const Tensor product = grads[0].defined() ? mm(ctx.saved(1), grads[0].t()) : Tensor();
            if (!grads[1].defined()) return product;
            const Tensor sums = grads[1].expand(ctx.input(0).sizes);
            return product.defined() ? product + sums : sums;
          },
          [&] { return grads[0].defined() ? mm(ctx.saved(0), grads[0]) : Tensor(); });
    });
LinearParameters linear_parameters_backward(const Tensor& grad_output, const Tensor& input) {
  auto [weight, bias] = op_linear_parameters_backward(grad_output, input);
  return {std::move(weight), std::move(bias)};
}

LS_OP(linear_gelu, TwoTensors(const Tensor&, const Tensor&, OptionalTensor),
      "linear_gelu(Tensor input, Tensor weight, Tensor? bias=None) -> (Tensor, Tensor)")
    .doc("The gelu (tanh form) of linear(input, weight, bias), and the argument of the gelu.")
    .structured(rules::linear_gelu)
    .batching(batching::linear_gelu)
    .flops(linear_flops<0, 1>)
    .autocast(Autocast::kLowerPrecision)
    .saves({"input for weight", "weight for input", "output1"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      const Tensor through =
          grads[0].defined() ? gelu_backward(grads[0], ctx.saved(2), kTanh) : Tensor();
      const Tensor grad = plus(grads[1], through);
      const ParameterGradients parameters(ctx, 1, grad);
      return ctx.gradients(
          [&] { return input_gradient(grad, ctx.saved(1), parameters.memory_of_input()); },
          [&] { return parameters.weight(); }, [&] { return parameters.bias(); });
    });
Gelu linear_gelu(const Tensor& input, const Tensor& weight, OptionalTensor bias) {
  auto [value, of] = op_linear_gelu(input, weight, bias);
  return {std::move(value), std::move(of)};
}

LS_OP(linear_factors, TwoTensors(const Tensor&, const Tensor&),
      "_linear_factors(Tensor input, Tensor weight) -> (Tensor, Tensor)")
    .doc("Both tensors, cast under autocast as the factors of a product.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& input, const Tensor& weight) {
      return TwoTensors{input, weight};
    });

namespace {
/// A bias as the rules want it: in the result's dtype. A lower precision is autocast's to make,
/// which casts a parameter once.
Tensor bias_in(OptionalTensor bias, DType dtype) {
  if (!bias) return {};
  const bool widest = dtype == DType::kF32 || dtype == DType::kF64;
  return as_dtype(widest ? *bias : std::get<0>(op_linear_factors(*bias, *bias)), dtype);
}
}  // namespace

LS_OP(linear_add_of_factors, Tensor(const Tensor&, const Tensor&, const Tensor&, OptionalTensor),
      "_linear_add(Tensor residual, Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")
    .doc("linear_add without casts by autocast.")
    .structured(rules::linear_add)
    .batching(batching::linear_add)
    .flops(linear_flops<1, 2>)
    .saves({"input for weight", "weight for input"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor narrow = as_dtype(grad, ctx.input(1).dtype);
      const ParameterGradients parameters(ctx, 2, narrow);
      return ctx.gradients(
          [&] { return grad; },
          [&] { return input_gradient(narrow, ctx.saved(1), parameters.memory_of_input()); },
          [&] { return parameters.weight(); }, [&] { return parameters.bias(); });
    });

LS_OP(linear_add, Tensor(const Tensor&, const Tensor&, const Tensor&, OptionalTensor),
      "linear_add(Tensor residual, Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")
    .doc("residual + linear(input, weight, bias); autocast does not cast the residual.")
    .composite([](const Tensor& residual, const Tensor& input, const Tensor& weight,
                  OptionalTensor bias) {
      const auto [left, right] = op_linear_factors(input, weight);
      if (!can_add_to(residual, left.dtype())) {
        return add(residual, linear(left, right, bias_in(bias, left.dtype())));
      }
      return op_linear_add_of_factors(residual, left, right, bias_in(bias, residual.dtype()));
    });
Tensor linear_add(const Tensor& residual, const Tensor& input, const Tensor& weight,
                  OptionalTensor bias) {
  return op_linear_add(residual, input, weight, bias);
}

LS_OP(linear_of_gelu_factors,
      Tensor(const Tensor&, const Tensor&, const Tensor&, OptionalTensor, OptionalTensor),
      "_linear_of_gelu(Tensor value, Tensor of, Tensor weight, Tensor? bias=None, Tensor? "
      "residual=None) -> Tensor")
    .doc("linear_of_gelu without casts by autocast.")
    .structured(rules::linear_of_gelu)
    .batching(batching::linear_of_gelu)
    .flops(linear_flops<0, 2>)
    .saves({"value for weight", "of for of", "weight for of"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor narrow = as_dtype(grad, ctx.input(1).dtype);
      const ParameterGradients parameters(ctx, 2, narrow);
      // The value is a function of `of`, so the whole gradient goes to `of`.
      return ctx.gradients([] { return Tensor(); },
                           [&] {
                             return argument_gradient(narrow, ctx.saved(2), ctx.saved(1),
                                                      parameters.memory_of_input());
                           },
                           [&] { return parameters.weight(); }, [&] { return parameters.bias(); },
                           [&] { return grad; });
    });

LS_OP(linear_of_gelu,
      Tensor(const Tensor&, const Tensor&, const Tensor&, OptionalTensor, OptionalTensor),
      "linear_of_gelu(Tensor value, Tensor of, Tensor weight, Tensor? bias=None, Tensor? "
      "residual=None) -> Tensor")
    .doc(
        "linear(value, weight, bias) + residual, where value is the gelu (tanh form) of `of`, to "
        "which the gradient goes; autocast does not cast the residual.")
    .composite([](const Tensor& value, const Tensor& of, const Tensor& weight, OptionalTensor bias,
                  OptionalTensor residual) {
      const auto [left, right] = op_linear_factors(value, weight);
      const DType dtype = left.dtype();
      if (residual && !can_add_to(*residual, dtype)) {
        return add(*residual, op_linear_of_gelu(left, of, right, bias, OptionalTensor()));
      }
      return op_linear_of_gelu_factors(left, as_dtype(of, dtype), right,
                                       bias_in(bias, residual ? residual->dtype() : dtype),
                                       residual);
    });
Tensor linear_of_gelu(const Gelu& gelu, const Tensor& weight, OptionalTensor bias,
                      OptionalTensor residual) {
  return op_linear_of_gelu(gelu.value, gelu.of, weight, bias, residual);
}

LS_OP(linear_of_gelu_backward, Tensor(const Tensor&, const Tensor&, const Tensor&),
      "linear_of_gelu_backward(Tensor grad_output, Tensor weight, Tensor of) -> Tensor")
    .doc("grad_output times weight, times the derivative of gelu (tanh form) at `of`.")
    .structured(rules::linear_of_gelu_backward)
    .batching(batching::linear_of_gelu_backward)
    .out()
    .flops([](std::span<const Value> arguments, std::span<const Value>) {
      return 2 * arguments[0].tensor().numel() * arguments[1].tensor().size(1);
    })
    .saves({"grad_output for weight, of", "weight for grad_output, of", "of"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& weight = ctx.saved(1);
      const Tensor& of = ctx.saved(2);
      const auto slope = [&] { return gelu_backward(grad, of, kTanh); };
      return ctx.gradients([&] { return matmul(slope(), weight.t()); },
                           [&] { return mm(rows_of(ctx.saved(0)).t(), rows_of(slope())); },
                           [&] {
                             const Tensor product = input_gradient(ctx.saved(0), weight);
                             return mul(mul(grad, product), gelu_tanh_curvature(of));
                           });
    });
Tensor linear_of_gelu_backward(const Tensor& grad_output, const Tensor& weight, const Tensor& of) {
  return op_linear_of_gelu_backward(grad_output, weight, of);
}
const Tensor& linear_of_gelu_backward_out(const Tensor& out, const Tensor& grad_output,
                                          const Tensor& weight, const Tensor& of) {
  return op_linear_of_gelu_backward.out(grad_output, weight, of, out);
}

Gelu linear_gelu_reference(const Tensor& input, const Tensor& weight, OptionalTensor bias) {
  const Tensor of = linear(input, weight, bias);
  return {gelu(of, kTanh), of};
}
Tensor linear_add_reference(const Tensor& residual, const Tensor& input, const Tensor& weight,
                            OptionalTensor bias) {
  return residual + linear(input, weight, bias);
}
Tensor linear_of_gelu_reference(const Tensor& of, const Tensor& weight, OptionalTensor bias,
                                OptionalTensor residual) {
  const Tensor product = linear(gelu(of, kTanh), weight, bias);
  return residual ? *residual + product : product;
}

}  // namespace lockstep
