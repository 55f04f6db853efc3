#include "nn/activations.h"

#include "core/ops/loss/loss.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_piecewise.h"

namespace lockstep::nn {

PReLU::PReLU(int64_t slopes, double init)
    : weight(register_parameter("weight", initial_values({slopes}, fill_with(init)))) {}

/// Defines the forward pass of `Class` as `result`, an expression of x.
#define LS_ACTIVATION(Class, result)                                    \
  Tensor Class::forward(const Tensor& input) const {                    \
    return run_forward([&](const Tensor& x) { return result; }, input); \
  }

LS_ACTIVATION(ReLU, relu(x))
LS_ACTIVATION(ReLU6, relu6(x))
LS_ACTIVATION(LeakyReLU, leaky_relu(x, negative_slope_))
LS_ACTIVATION(PReLU, prelu(x, weight))
LS_ACTIVATION(ELU, elu(x, alpha_))
LS_ACTIVATION(CELU, celu(x, alpha_))
LS_ACTIVATION(SELU, selu(x))
LS_ACTIVATION(GELU, gelu(x, approximate_))
LS_ACTIVATION(SiLU, silu(x))
LS_ACTIVATION(Mish, mish(x))
LS_ACTIVATION(Tanh, tanh(x))
LS_ACTIVATION(Tanhshrink, x - tanh(x))
LS_ACTIVATION(Sigmoid, sigmoid(x))
LS_ACTIVATION(LogSigmoid, log_sigmoid(x))
LS_ACTIVATION(Softplus, softplus(x, beta_, threshold_))
LS_ACTIVATION(Softsign, x / (abs(x) + 1))
LS_ACTIVATION(Softshrink, softshrink(x, lambd_))
LS_ACTIVATION(Hardshrink, hardshrink(x, lambd_))
LS_ACTIVATION(Hardtanh, hardtanh(x, min_val_, max_val_))
LS_ACTIVATION(Hardsigmoid, hardsigmoid(x))
LS_ACTIVATION(Hardswish, hardswish(x))
LS_ACTIVATION(Threshold, threshold(x, threshold_, value_))
LS_ACTIVATION(GLU, glu(x, dim_))
LS_ACTIVATION(Softmax, softmax(x, dim_))
LS_ACTIVATION(Softmin, softmax(-x, dim_))
LS_ACTIVATION(LogSoftmax, log_softmax(x, dim_))

#undef LS_ACTIVATION

}  // namespace lockstep::nn
