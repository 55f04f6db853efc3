#include "core/dispatch/kernel.h"
#include "kernels/common/functors.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/matmul/matmul_lt.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/reduce/sum.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

using namespace functors;

// Combinations without a cuBLASLt epilogue are computed as a product and a separate pass over it.

void linear_gelu(const Out& value, const Out& of, const In& input, const In& weight,
                 const In& bias) {
  if (value.numel == 0) return;
  const Product product = linear_product(value, input, weight, bias);
  if (multiply_by_cublas_lt(product, {.activation = LtActivation::kGelu, .aux = of.address})) {
    return;
  }
  gemm(linear_product(of, input, weight, bias));
  with_floating_lane(value.dtype,
                     [&]<class T>() { elementwise<T, T>(value, GeluTanh(), of.as_in()); });
}

void linear_of_gelu_backward(const Out& out, const In& grad, const In& weight, const In& of) {
  if (out.numel == 0) return;
  const Product product = linear_input_product(out, grad, weight);
  if (multiply_by_cublas_lt(product,
                            {.activation = LtActivation::kGeluBackward, .aux = of.address})) {
    return;
  }
  gemm(product);
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, T>(out, GeluTanhBackward(), out.as_in(), of);
  });
}

/// `like` with another dtype, in the memory of a workspace.
Out in_workspace(const TensorArg& like, const Workspace& workspace, DType dtype) {
  Out out;
  static_cast<TensorArg&>(out) = like;
  out.address = workspace.data();
  out.dtype = dtype;
  return out;
}
size_t bytes_as(const TensorArg& tensor, DType dtype) {
  return static_cast<size_t>(tensor.numel) * size_of(dtype);
}

void add_to_product(const Out& out, const In& residual, const Out& sum, const Product& product) {
  gemm(product);
  with_floating_lane(out.dtype,
                     [&]<class T>() { elementwise<T, T, T>(out, Add(), residual, sum.as_in()); });
}

void linear_add(const Out& out, const In& residual, const In& input, const In& weight,
                const In& bias) {
  if (out.numel == 0) return;
  const Product product = linear_product(out, input, weight, bias);
  if (multiply_by_cublas_lt(product, {.residual = residual.address, .result_dtype = out.dtype})) {
    return;
  }
  if (input.dtype == out.dtype) return add_to_product(out, residual, out, product);
  const Workspace sums(bytes_as(out, input.dtype));
  const Out sum = in_workspace(out, sums, input.dtype);
  if (!bias.defined()) {
    return add_to_product(out, residual, sum, linear_product(sum, input, weight, bias));
  }
  const Workspace biases(bytes_as(bias, input.dtype));
  const Out narrow = in_workspace(bias, biases, input.dtype);
  copy_elements(narrow, bias);
  add_to_product(out, residual, sum, linear_product(sum, input, weight, narrow.as_in()));
}

void linear_of_gelu(const Out& out, const In& value, const In&, const In& weight, const In& bias,
                    const In& residual) {
  if (residual.defined()) return linear_add(out, residual, value, weight, bias);
  if (out.numel != 0) gemm(linear_product(out, value, weight, bias));
}

void linear_parameters_backward(const Out& weight, const Out& bias, const In& grad,
                                const In& input) {
  // cuBLASLt's epilogue for the bias is a kernel of its own behind the product, at about half of
  // the memory's rate.
  if (weight.numel != 0) gemm(linear_weight_product(weight, grad, input));
  sum_over(bias, grad, {0});
}

}  // namespace

LS_KERNEL(CUDA, "linear_gelu", linear_gelu, Strides::kContiguous);
LS_KERNEL(CUDA, "_linear_add", linear_add, Strides::kContiguous);
LS_KERNEL(CUDA, "_linear_of_gelu", linear_of_gelu, Strides::kContiguous);
LS_KERNEL(CUDA, "linear_of_gelu_backward", linear_of_gelu_backward, Strides::kContiguous);
LS_KERNEL(CUDA, "linear_parameters_backward", linear_parameters_backward, Strides::kContiguous);

}  // namespace lockstep::cuda
