#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Linear layers fused with the gelu or the residual next to them in a transformer block. On cuda
// cuBLASLt's epilogues apply these before the result is rounded and stored; on the cpu each
// operator has the bits of the unfused ones. Gelu is the tanh form throughout. Inputs are [...,
// in], weights [out, in], biases [out] or undefined.

/// gelu(of, "tanh") with its argument.
struct Gelu {
  Tensor value;
  Tensor of;
};

/// gelu(linear(input, weight, bias), "tanh") with its argument.
Gelu linear_gelu(const Tensor& input, const Tensor& weight, OptionalTensor bias = {});

/// residual + linear(input, weight, bias); the residual has the result's shape, and dtypes promote
/// as in a sum. Under autocast only the factors (input and weight) are cast. Runs in one pass if
/// the residual has the factors' dtype, or is f32 with factors in bf16 or f16.
Tensor linear_add(const Tensor& residual, const Tensor& input, const Tensor& weight,
                  OptionalTensor bias = {});

/// linear(gelu.value, weight, bias), plus the residual if given. The gradient flows to `gelu.of`
/// directly, not through `gelu.value`, so that backward can multiply its matrix product by the
/// derivative of gelu in the epilogue. `gelu.value` must be the gelu of `gelu.of`.
Tensor linear_of_gelu(const Gelu& gelu, const Tensor& weight, OptionalTensor bias = {},
                      OptionalTensor residual = {});

/// gelu_backward(grad_output weight, of, "tanh"): the gradient of `gelu.of` above. grad_output
/// [..., out], of [..., in].
Tensor linear_of_gelu_backward(const Tensor& grad_output, const Tensor& weight, const Tensor& of);
const Tensor& linear_of_gelu_backward_out(const Tensor& out, const Tensor& grad_output,
                                          const Tensor& weight, const Tensor& of);

/// Gradients of a linear layer's weight and bias, given that of its result: grad_output [rows, out]
/// transposed times input [rows, in], and the sums of grad_output over the rows.
struct LinearParameters {
  Tensor weight;
  Tensor bias;
};
LinearParameters linear_parameters_backward(const Tensor& grad_output, const Tensor& input);

// The same functions made of one operator per step: references for testing those above.

Gelu linear_gelu_reference(const Tensor& input, const Tensor& weight, OptionalTensor bias = {});
Tensor linear_add_reference(const Tensor& residual, const Tensor& input, const Tensor& weight,
                            OptionalTensor bias = {});
Tensor linear_of_gelu_reference(const Tensor& of, const Tensor& weight, OptionalTensor bias = {},
                                OptionalTensor residual = {});

}  // namespace lockstep
