#include "core/ops/matmul/fused_linear_rules.h"

#include "core/base/check.h"

namespace lockstep::rules {

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

}  // namespace

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

}  // namespace lockstep::rules
