#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Products with what stands before and behind them in a block of a transformer. On cuda that is
// done by cuBLASLt's epilogues, on the way of the result to memory, and rounded once with it; on
// the cpu all have the bits of the operators that they stand for. Gelu is that of the tanh form.
// Inputs are [..., in], weights [out, in], biases [out] or undefined.

/// gelu(of, "tanh"), and what it was taken of.
struct Gelu {
  Tensor value;
  Tensor of;
};

/// The gelu of linear(input, weight, bias).
Gelu linear_gelu(const Tensor& input, const Tensor& weight, OptionalTensor bias = {});

/// residual + linear(input, weight, bias), the residual of the result's shape; their dtypes promote
/// as in a sum. Under autocast only the factors are cast. One pass where the residual has the
/// factors' dtype, or is f32 beside bf16 or f16.
Tensor linear_add(const Tensor& residual, const Tensor& input, const Tensor& weight,
                  OptionalTensor bias = {});

/// linear(gelu.value, weight, bias), plus the residual where there is one. The gradient goes to
/// `gelu.of`, past `gelu.value`, so that the product of the backward pass is multiplied by the
/// gelu's slope on its way to memory. `gelu.value` must be the gelu of `gelu.of`.
Tensor linear_of_gelu(const Gelu& gelu, const Tensor& weight, OptionalTensor bias = {},
                      OptionalTensor residual = {});

/// gelu_backward(grad_output weight, of, "tanh"): the gradient of `gelu.of` above. grad_output
/// [..., out], of [..., in].
Tensor linear_of_gelu_backward(const Tensor& grad_output, const Tensor& weight, const Tensor& of);

// The same as operators for each step: what those above are tested against.

Gelu linear_gelu_reference(const Tensor& input, const Tensor& weight, OptionalTensor bias = {});
Tensor linear_add_reference(const Tensor& residual, const Tensor& input, const Tensor& weight,
                            OptionalTensor bias = {});
Tensor linear_of_gelu_reference(const Tensor& of, const Tensor& weight, OptionalTensor bias = {},
                                OptionalTensor residual = {});

}  // namespace lockstep
